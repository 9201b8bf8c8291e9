"""What a partition expression may use: functions whose cost and output are bounded by what goes into them.

Evaluation can't be interrupted, and expressions come with tables that any client may have written. So each function is
deterministic, takes time linear in its arguments and gives no more than they hold. Text then never grows beyond the sum
of what an expression names, however its calls are nested: no function repeats or replaces, encodes, builds lists or
runs regular expressions. Padding is bounded by its width, which must be a small number that is written out.
"""

from __future__ import annotations

from lancepart.model.functions import FUNCTIONS

MOST_TOKENS = 250
MOST_CHARACTERS = 10_000
MOST_NESTED = 10
MOST_PADDED = 100
PAGE = "«Functions of partition expressions» in docs/partitioned-table.md"

KINDS: dict[str, tuple[str, ...]] = {
    "choice": ("coalesce", "greatest", "ifnull", "isnan", "iszero", "least", "nanvl", "nullif", "nvl", "nvl2"),
    "numbers": (
        *("abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "cos", "cosh", "cot"),
        *("degrees", "exp", "floor", "gcd", "lcm", "ln", "log", "log10", "log2", "pi", "pow", "power", "radians"),
        *("round", "signum", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"),
    ),
    "text": (
        *("ascii", "bit_length", "btrim", "char_length", "character_length", "chr", "concat", "concat_ws", "contains"),
        *("ends_with", "find_in_set", "initcap", "instr", "left", "length", "lower", "ltrim", "octet_length"),
        *("overlay", "position", "reverse", "right", "rtrim", "split_part", "starts_with", "strpos", "substr"),
        *("substr_index", "substring", "substring_index", "to_hex", "translate", "trim", "upper"),
    ),
    "dates and times": (
        *("date_bin", "date_format", "date_part", "date_trunc", "datepart", "datetrunc", "from_unixtime", "make_date"),
        *("to_char", "to_date", "to_timestamp", "to_timestamp_micros", "to_timestamp_millis", "to_timestamp_nanos"),
        *("to_timestamp_seconds", "to_unixtime"),
    ),
    "hashes": (*FUNCTIONS, "md5", "sha224", "sha256", "sha384", "sha512"),
    "others": ("arrow_typeof", "get_field"),
}
PADDING = frozenset({"lpad", "rpad"})
ALLOWED = frozenset(name for names in KINDS.values() for name in names)
OPERATORS = frozenset(
    [
        *("+", "-", "*", "/", "%", "DIV", "||", "AND", "OR", "&", "|", "BIT_XOR", "<<", ">>"),
        *("=", "!=", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"),
    ]
)
