"""How Lance and object stores are called; nothing else imports them."""

from lancepart.storage.lance_threads import use_all_cores

use_all_cores()
