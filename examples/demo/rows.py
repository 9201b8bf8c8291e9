"""The rows of the demo, made by Spark itself: events of uneven tenants with texts and embeddings."""

from __future__ import annotations

import pyarrow as pa

TENANTS = 24
DIMENSIONS = 16
TOPICS = ["invoice", "delivery", "refund", "login", "upgrade", "outage", "search", "export", "import", "holiday"]
STATES = ["late", "lost", "early", "wrong", "double", "missing", "slow", "fixed", "new", "old"]
ASKS = ["please call back", "thank you", "it is urgent", "see the picture", "as agreed", "for the third time"]

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("ts", pa.timestamp("us", "UTC")),
        ("tenant", pa.string()),
        ("user", pa.int64()),
        ("amount", pa.float64()),
        ("text", pa.string()),
        ("embedding", pa.list_(pa.float32(), DIMENSIONS)),
    ]
)


def events(source: str, *, start: str, days: int) -> str:
    """A query that makes an event of each id; the first tenants have most, and texts of a topic lie together."""
    share = "pmod(xxhash64(id, 1), 1000000) / 1000000D"
    return f"""
        SELECT id,
            timestampadd(SECOND, cast(pmod(xxhash64(id, 2), {days * 86_400}) AS int), TIMESTAMP '{start}') AS ts,
            format_string('tenant-%02d', cast({TENANTS} * {share} * {share} AS int)) AS tenant,
            pmod(xxhash64(id, 3), 100000) AS user,
            round(pmod(xxhash64(id, 4), 100000) / 100D, 2) AS amount,
            concat_ws(' ', {_pick(STATES, 5)}, element_at({_list(TOPICS)}, topic + 1), {_pick(ASKS, 6)}, id) AS text,
            array({", ".join(_number(n) for n in range(DIMENSIONS))}) AS embedding
        FROM (SELECT id, cast(pmod(xxhash64(id, 7), {len(TOPICS)}) AS int) AS topic FROM {source})
    """


def _list(words: list[str]) -> str:
    return f"array({', '.join(repr(word) for word in words)})"


def _pick(words: list[str], seed: int) -> str:
    return f"element_at({_list(words)}, cast(pmod(xxhash64(id, {seed}), {len(words)}) AS int) + 1)"


def _number(n: int) -> str:
    """One number of an embedding: its topic's, and a smaller one of its own."""
    topic = f"pmod(xxhash64(topic, {n}), 2000) / 1000D - 1"
    own = f"pmod(xxhash64(id, {100 + n}), 1000) / 1000D - 0.5"
    return f"cast({topic} + 0.5D * ({own}) AS float)"
