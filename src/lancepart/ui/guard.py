"""Who may read: the names under which the server answers, and the token that it asks for."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import quote, unquote

from lancepart.errors import InvalidInputError

LEAST_TOKEN = 16
_LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]"})


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_everywhere(host: str) -> bool:
    """Whether an address stands for all addresses of the machine.

    >>> is_everywhere("0.0.0.0"), is_everywhere("::"), is_everywhere("127.0.0.1"), is_everywhere("localhost")
    (True, True, False, False)
    """
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """Which requests are answered; browsers send a cookie to all ports of a host, so its name has the port."""

    host: str
    port: int = 0
    token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.token is None and not is_loopback(self.host):
            raise InvalidInputError(
                f"{self.host!r} can be reached from other machines: give a token, or leave the host out"
            )
        if self.token is not None and (len(self.token) < LEAST_TOKEN or not self.token.isascii()):
            raise InvalidInputError(f"the token is too short: give at least {LEAST_TOKEN} ASCII characters")

    def knows(self, host: str | None) -> bool:
        """Whether a ``Host`` header names this server, so that no other site's name leads here (DNS rebinding)."""
        if host is None:
            return False
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        if name.lower() in _LOCAL or name.lower() == self.host.lower() or name == f"[{self.host}]":
            return True
        return self.token is not None and _is_address(name)

    def is_own(self, headers: Mapping[str, str]) -> bool:
        """Whether the page itself sent a request, and no other site; browsers say so."""
        return headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin")

    @property
    def cookie(self) -> str:
        """What a browser keeps once it had the token, whose characters may be any.

        >>> Guard(host="localhost", port=8710, token="sixteen; letters").cookie.partition("; ")[0]
        'lancepart_ui_8710=sixteen%3B%20letters'
        """
        return f"{self._cookie_name}={quote(self.token or '', safe='')}; HttpOnly; SameSite=Strict; Path=/"

    @property
    def _cookie_name(self) -> str:
        return f"lancepart_ui_{self.port}"

    def admits(self, headers: Mapping[str, str], token: str | None = None) -> bool:
        """Whether a request has the token: in the URL, in a cookie or as a bearer."""
        if self.token is None:
            return True
        bearer = headers.get("Authorization", "").removeprefix("Bearer ").strip()
        return any(
            self._is_token(each) for each in (token, bearer, _cookie(headers.get("Cookie", ""), self._cookie_name))
        )

    def _is_token(self, given: str | None) -> bool:
        assert self.token is not None
        return bool(given) and hmac.compare_digest((given or "").encode(), self.token.encode())


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _cookie(text: str, name: str) -> str | None:
    try:
        found = SimpleCookie(text).get(name)
    except CookieError:
        return None
    return None if found is None else unquote(found.value)
