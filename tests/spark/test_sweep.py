"""The same rows from our tables as from Parquet, whatever is asked."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.support.tiers import one_in

QUERIES = [
    "SELECT * FROM {types}",
    "SELECT id, text FROM {types} WHERE id = 7",
    "SELECT id FROM {types} WHERE id IS NULL",
    "SELECT id FROM {types} WHERE id <=> NULL",
    "SELECT id FROM {types} WHERE NOT (id <=> 7)",
    "SELECT id, country FROM {types} WHERE country = 'US' AND id > 3",
    "SELECT id FROM {types} WHERE country = 'O''Neil'",
    "SELECT id FROM {types} WHERE country IN ('US', 'JP') OR country IS NULL",
    "SELECT id FROM {types} WHERE country NOT IN ('US', 'JP')",
    "SELECT id FROM {types} WHERE country NOT IN ('US', NULL)",
    "SELECT id FROM {types} WHERE NOT (country = 'US' OR id < 10)",
    "SELECT id FROM {types} WHERE NOT (country = 'US' AND id < 10)",
    "SELECT id, f64 FROM {types} WHERE f64 = 0.0D",
    "SELECT id, f64 FROM {types} WHERE f64 >= 0.0D",
    "SELECT id, f64 FROM {types} WHERE f64 <= -0.0D",
    "SELECT id, f64 FROM {types} WHERE f64 > 1.5D",
    "SELECT id, f64 FROM {types} WHERE NOT (f64 > 1.5D)",
    "SELECT id, f64 FROM {types} WHERE f64 < 0.0D OR f64 = 'NaN'",
    "SELECT id, f64 FROM {types} WHERE f64 <> 'NaN' AND f64 <> 0.0D",
    "SELECT id, f64 FROM {types} WHERE f64 IN (-0.0D, double('NaN'), 7.25D)",
    "SELECT id, f64 FROM {types} WHERE f64 NOT IN (0.0D, 7.25D)",
    "SELECT id, f32 FROM {types} WHERE f32 >= float('-0.0') AND f32 < float('Infinity')",
    "SELECT min(f64), max(f64), count(f64) FROM {types}",
    "SELECT id FROM {types} WHERE flag",
    "SELECT id FROM {types} WHERE NOT flag OR flag IS NULL",
    "SELECT id FROM {types} WHERE flag = false",
    "SELECT text FROM {types} WHERE text LIKE 'a%'",
    "SELECT text FROM {types} WHERE text NOT LIKE 'a%'",
    "SELECT text FROM {types} WHERE text LIKE '%b' OR text LIKE '%''%' OR text = 'ab\\\\c'",
    "SELECT text FROM {types} WHERE text > 'a' AND big <= 'zz '",
    "SELECT code, count(*) FROM {types} WHERE code IN ('x', 'z') AND code <> 'z' GROUP BY code",
    "SELECT id FROM {types} WHERE day >= DATE '2024-02-01' AND day < DATE '2024-06-01'",
    "SELECT id FROM {types} WHERE ts > TIMESTAMP '2023-12-01 00:00:00'",
    "SELECT id FROM {types} WHERE ts = TIMESTAMP '2023-11-05 03:59:59.999999Z'",
    "SELECT id FROM {types} WHERE zoned BETWEEN TIMESTAMP '2023-12-01' AND TIMESTAMP '2024-01-01'",
    "SELECT id FROM {types} WHERE ntz < TIMESTAMP_NTZ '2023-12-01 12:00:00'",
    "SELECT id, nanos FROM {types} WHERE nanos > TIMESTAMP '2023-11-07 00:00:00'",
    "SELECT a.id FROM {types} a JOIN {types} b ON a.nanos = b.nanos AND b.nanos <= TIMESTAMP '2023-12-01'",
    "SELECT id FROM {types} WHERE millis IN (SELECT max(millis) FROM {types}) OR millis <> TIMESTAMP '2023-12-01'",
    "SELECT id, clock FROM {types} WHERE clock > TIME '12:00:00'",
    "SELECT id FROM {types} WHERE price > 12.5 AND price <= 200",
    "SELECT id FROM {types} WHERE price IN (-125.00, 3.25) OR wide > 1000",
    "SELECT id FROM {types} WHERE raw > X'30' AND raw <> X'32CD'",
    "SELECT id FROM {types} WHERE fixed = X'00989680'",
    "SELECT id FROM {types} WHERE u8 > 300 OR u8 < 7 OR u16 = 1000",
    "SELECT id FROM {types} WHERE u32 > 3000000000 AND u64 > 10000000000000000000",
    "SELECT id FROM {types} WHERE i8 = -128 OR i16 IN (1, 8) OR i32 BETWEEN -5000 AND 5000",
    "SELECT id, pair.x, nums[0], vec[1] FROM {types} WHERE pair.x > 50 AND size(nums) > 1",
    "SELECT pair.y FROM {types} WHERE pair IS NOT NULL AND vec IS NOT NULL",
    "SELECT count(*), count(text), min(id), max(id), min(text), max(day), min(ts) FROM {types}",
    "SELECT count(*), min(i32), max(text) FROM {types} WHERE country = 'US' AND day > DATE '2024-01-01'",
    "SELECT count(*), min(id) FROM {types} WHERE id > 100000",
    "SELECT count(*) FROM {types} WHERE f64 > 0",
    "SELECT country, count(*), sum(i32), avg(price) FROM {types} GROUP BY country",
    "SELECT count(DISTINCT text) FROM {types}",
    "SELECT id FROM (SELECT * FROM {types} WHERE id = 1) UNION ALL SELECT id FROM {types} WHERE id = 2",
    "SELECT count(*) FROM (SELECT * FROM {types} WHERE flag) x JOIN {types} y ON x.id = y.id",
    "SELECT (SELECT count(*) FROM {types} WHERE id = 1) a, (SELECT count(*) FROM {types}) b",
    "SELECT x.id, y.id FROM {types} x LEFT JOIN {types} y ON x.id = y.id AND y.country = 'FR'",
    "SELECT id, row_number() OVER (PARTITION BY country ORDER BY ts, id) n FROM {types}",
    "SELECT id, sum(i32) OVER (PARTITION BY id) FROM {types}",
    "WITH w AS (SELECT id, country FROM {types} WHERE id < 9) SELECT * FROM w a JOIN w b USING (id)",
    "SELECT id FROM {types} a WHERE EXISTS (SELECT 1 FROM {b8} b WHERE b.id = a.id AND b.country = 'JP')",
    "SELECT id FROM {types} WHERE id NOT IN (SELECT id FROM {b8} WHERE id IS NOT NULL AND id > 20)",
    "SELECT country, id FROM {evolved} WHERE country = 'US' AND day > DATE '2024-03-01'",
    "SELECT year(day), count(*) FROM {evolved} WHERE year(day) = 2024 GROUP BY 1",
    "SELECT id FROM {mixed} WHERE id IN (1, 2, 3) EXCEPT SELECT id FROM {b8} WHERE id = 2",
    "SELECT id FROM {days} WHERE day = DATE '2024-01-02' INTERSECT SELECT id FROM {months}",
    "SELECT text, count(*) FROM {prefix} WHERE text LIKE 'ab%' OR text >= 'z' GROUP BY text",
    "SELECT i32 FROM {tens} WHERE i32 > -15000 AND i32 < 25000 ORDER BY i32 LIMIT 7",
    "SELECT count(*) FROM (SELECT id FROM {types} LIMIT 33)",
    "SELECT count(*) FROM (SELECT id FROM {types} WHERE country = 'US' LIMIT 5)",
    "SELECT count(*) FROM (SELECT id FROM {types} WHERE f64 > 0 LIMIT 5)",
    "SELECT 1 FROM {types} WHERE false",
    "SELECT max(length(text)) FROM {many} WHERE id = 3 AND country = 'JP'",
]


def rows_of(frame: Any) -> Counter[str]:
    """Rows as texts, whatever their order."""
    return Counter(repr(tuple(row)) for row in frame.collect())


@pytest.mark.parametrize("query", one_in(6, QUERIES))
def test_a_query_gives_the_rows_that_it_gives_over_parquet(query: str, spark: Any, pairs: dict[str, Any]) -> None:
    ours, theirs = (query.format(**{name: f"{side}_{name}" for name in pairs}) for side in "lp")

    assert rows_of(spark.sql(ours)) == rows_of(spark.sql(theirs))


def test_every_type_is_the_one_that_parquet_gives(spark: Any, pairs: dict[str, Any]) -> None:
    assert spark.table("l_types").schema.simpleString() == spark.table("p_types").schema.simpleString()


def test_a_relation_used_twice_keeps_its_filters_apart(spark: Any, pairs: dict[str, Any]) -> None:
    frame = spark.read.format("lancepart").load(pairs["types"].root)
    total = frame.count()

    one = frame.where("id % 2 = 1").count()
    both = frame.where("country = 'US'").select("id").unionAll(frame.where("country = 'FR'").select("id"))
    cached = frame.where("country = 'US'").cache()

    assert (frame.count(), frame.where("id % 2 = 1").count()) == (total, one)
    assert both.count() == frame.where("country IN ('US', 'FR')").count()
    assert cached.count() == frame.where("country = 'US'").count() < total
    assert frame.where("country = 'FR'").count() == frame.count() - frame.where("NOT country <=> 'FR'").count()
    cached.unpersist()
