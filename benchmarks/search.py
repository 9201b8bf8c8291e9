"""Searches of 100 uneven tenants beside LanceDB and plain pylance, which hold one table with the tenant indexed.

Calls of all three take turns, so that whatever else the machine does hits them alike. 200 k rows of 64 numbers, and 1 M
of 128, which take most of the suite's time; ``LANCEPART_BENCH_ROWS`` takes any other number of 64 instead.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import lance
import lancedb
import numpy as np
import pyarrow as pa

import lancepart as lp
from benchmarks.report import Report, cpu_seconds, measure, sized, timing

ROWS = sized(200_000, 40_000, "LANCEPART_BENCH_ROWS")
WIDTH = 64
SIZES = ((ROWS, WIDTH), (1_000_000, 128)) if ROWS == 200_000 else ((ROWS, WIDTH),)
TENANTS, CLUSTERS, WORDS = 100, 400, 5_000
K, QUERIES, LEAVES = 10, sized(60, 20), sized(1_000, 200)
MANY_ROWS, FEWER_QUERIES = 500_000, 20
"""From so many rows on searches without an index are made for fewer queries: they take half a second each."""
COLUMNS = ["id", "tenant"]
_FEW = 3
HEADLINES = ("one middle tenant, ANN",)

Call = Callable[[int], pa.Table]


@dataclass(frozen=True, kw_only=True)
class Case:
    """The rows, the queries, and the three tables that hold them; ``answers`` are the true ids by tenant."""

    rows: pa.Table
    vectors: Any
    tenants: Any
    queries: Any
    texts: Sequence[str]
    ours: lp.PartitionedTable
    peer: Any
    plain: Any

    @property
    def prefix(self) -> str:
        """What the names of figures of a larger case begin with."""
        return "" if len(self.vectors) == ROWS else f"{len(self.vectors) // 1_000_000} M x {self.vectors.shape[1]}: "

    def truth(self, tenant: int | None) -> list[set[int]]:
        """The ids of the nearest rows of each query, of one tenant or of all."""
        own = np.arange(len(self.vectors)) if tenant is None else np.flatnonzero(self.tenants == tenant)
        held = self.vectors[own]
        near = (held**2).sum(axis=1)[:, None] - 2 * held @ self.queries.T
        found = []
        for at, query in enumerate(self.queries):
            some = np.argpartition(near[:, at], min(10 * K, len(own)) - 1)[: 10 * K]
            away = ((held[some].astype(np.float64) - query) ** 2).sum(axis=1)
            found.append(set(own[some[np.argsort(away)[:K]]].tolist()))
        return found

    def sized(self, at: float) -> int:
        """The tenant at a share of the order by size, the largest first."""
        counts = np.bincount(self.tenants, minlength=TENANTS)
        return int(np.argsort(-counts, kind="stable")[int(at * (TENANTS - 1))])


def run(report: Report) -> None:
    """All figures, the recall, and the memory that the process came to hold."""
    os.environ.setdefault("LANCE_LOG", "error")
    for rows, width in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            _tenants(report, _case(folder, rows, width), folder)
    with tempfile.TemporaryDirectory() as folder:
        _many_leaves(report, folder)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    report.note(f"memory of the process, with all three, at its peak: {peak} MiB")


def _tenants(report: Report, case: Case, folder: str) -> None:
    counts = np.bincount(case.tenants, minlength=TENANTS)
    large, middle, small = case.sized(0.0), case.sized(0.1), case.sized(0.8)
    sizes = f"{counts[large]}, {counts[middle]}, {counts[small]}"
    report.note(f"{len(case.vectors)} rows x {case.vectors.shape[1]}; tenants of {sizes} rows")
    for name, tenant in (("large", large), ("middle", middle)):
        _vectors(report, case, f"one {name} tenant, exact", tenant, exact=True)
    _vectors(report, case, "small tenant from memory", small, exact=True)
    _indexed(report, case)
    for name, tenant in (("large", large), ("middle", middle)):
        _vectors(report, case, f"one {name} tenant, ANN", tenant)
    _vectors(report, case, "all tenants, ANN", None)
    _vectors(report, case, "all tenants, exact", None, exact=True)
    _texts(report, case, "text, one tenant", large)
    _texts(report, case, "text, all tenants", None)
    _memory(report, case, folder, {"large": large, "middle": middle, "small": small})
    _fresh(report, case, middle)


def _case(folder: str, count: int, width: int) -> Case:
    draw = np.random.default_rng(3)
    share = 1 / np.arange(1, TENANTS + 1) ** 0.8
    tenants = draw.choice(TENANTS, count, p=share / share.sum()).astype(np.int32)
    vectors = _clustered(draw, count, width)
    words = np.array([f"word{n}" for n in range(WORDS)])
    often = 1 / np.arange(1, WORDS + 1)
    drawn = words[draw.choice(WORDS, (count, 8), p=often / often.sum())]
    rows = pa.table(
        {
            "id": np.arange(count),
            "tenant": tenants,
            "body": [" ".join(each) for each in drawn],
            "v": pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), width),
        }
    )
    ours = lp.create_table(f"{folder}/ours", rows.schema, ["tenant"])
    ours.append(rows)
    peer = lancedb.connect(f"{folder}/peer").create_table("t", rows)
    peer.create_scalar_index("tenant", index_type="BITMAP")
    return Case(
        rows=rows,
        vectors=vectors,
        tenants=tenants,
        queries=vectors[draw.integers(0, count, QUERIES)] + draw.normal(scale=0.3, size=(QUERIES, width)).astype("f4"),
        texts=[f"word{a} word{b}" for a, b in draw.integers(3, 300, (QUERIES, 2))],
        ours=ours,
        peer=peer,
        plain=lance.dataset(f"{folder}/peer/t.lance"),
    )


def _clustered(draw: Any, count: int, width: int) -> Any:
    centers = draw.normal(size=(CLUSTERS, width)).astype(np.float32)
    spread = draw.normal(scale=0.6, size=(count, width)).astype(np.float32)
    return centers[draw.integers(0, CLUSTERS, count)] + spread


def _indexed(report: Report, case: Case) -> None:
    """Build all indices; each side in the way that it recommends."""
    found = [measure({"": partial(build, case)}, runs=1, warm=0)[""] for build in (_our_indices, _peer_indices)]
    report.add(f"{case.prefix}build vector and text indices", *found, peer="LanceDB", unit="s")
    case.plain.checkout_version(case.plain.latest_version)


def _our_indices(case: Case) -> None:
    case.ours.maintenance.create_index("v", progress=False)
    case.ours.maintenance.create_index("body", "FTS", progress=False)


def _peer_indices(case: Case) -> None:
    parts = max(1, len(case.vectors) // 2_000)
    case.peer.create_index("l2", vector_column_name="v", index_type="IVF_FLAT", num_partitions=parts)
    case.peer.create_fts_index("body", use_tantivy=False)
    case.peer.wait_for_index(["v_idx", "body_idx"], timeout=timedelta(minutes=10))


def _vectors(report: Report, case: Case, name: str, tenant: int | None, *, exact: bool = False) -> None:
    where = None if tenant is None else f"tenant = {tenant}"

    calls = _calls(case, case.queries, where, exact=exact)
    truth, warm = case.truth(tenant), _FEW if exact else QUERIES
    queries = min(QUERIES, FEWER_QUERIES) if exact and len(case.vectors) >= MANY_ROWS else QUERIES
    _compare(report, case.prefix + name, calls, truth, warm=warm, queries=queries)


def _calls(case: Case, asked: Sequence[Any], where: str | None, *, exact: bool = False) -> dict[str, Call]:
    """Searches for vectors or texts by each of the three."""
    return {
        "lancepart": lambda at: _ours(case.ours, asked[at], where, exact=exact),
        "LanceDB": lambda at: _peers(case.peer, asked[at], where, exact=exact),
        "pylance": lambda at: _plains(_plain(case), asked[at], where, exact=exact),
    }


def _ours(table: lp.PartitionedTable, asked: Any, where: str | None, *, exact: bool = False) -> pa.Table:
    if isinstance(asked, str):
        return table.search(asked, "body", K, where, COLUMNS).to_arrow()
    return table.search(asked, "v", K, where, COLUMNS, exact=exact).to_arrow()


def _peers(table: Any, asked: Any, where: str | None, *, exact: bool = False) -> pa.Table:
    if isinstance(asked, str):
        search = table.search(asked, query_type="fts").limit(K).select([*COLUMNS, "_score"])
    else:
        search = table.search(asked, "v").limit(K).select([*COLUMNS, "_distance"])
        search = search.bypass_vector_index() if exact else search
    return (search if where is None else search.where(where, prefilter=True)).to_arrow()


def _plains(table: Any, asked: Any, where: str | None, *, exact: bool = False) -> pa.Table:
    if isinstance(asked, str):
        full = {"query": asked, "columns": ["body"]}
        return table.to_table([*COLUMNS, "_score"], where, prefilter=True, limit=K, full_text_query=full)
    near = {"column": "v", "q": asked, "k": K, "use_index": not exact}
    return table.to_table([*COLUMNS, "_distance"], where, prefilter=True, nearest=near)


def _plain(case: Case) -> Any:
    return lance.dataset(case.plain.uri, session=case.plain.session())


def _texts(report: Report, case: Case, name: str, tenant: int | None) -> None:
    where = None if tenant is None else f"tenant = {tenant}"

    calls = _calls(case, case.texts, where)
    ours, plain = calls["lancepart"], calls["pylance"]
    started = time.perf_counter()
    ours(0)
    report.note(f"{case.prefix}{name}: first search {1000 * (time.perf_counter() - started):.1f} ms")
    for at in range(5):
        scores = [np.sort(each(at).column("_score").to_numpy())[::-1] for each in (ours, plain)]
        np.testing.assert_allclose(*scores, rtol=1e-5)
    _compare(report, case.prefix + name, calls, None)


def _fresh(report: Report, case: Case, tenant: int) -> None:
    """Append to one tenant and search it at once; the recall is how often the new row is the nearest."""
    rows = len(case.vectors)
    numbers = iter(range(rows, rows + 10 * QUERIES))
    last: list[int] = []

    def row(at: int) -> pa.Table:
        last[:] = [next(numbers)]
        value = {"id": last[0], "tenant": tenant, "body": "fresh", "v": case.queries[at]}
        return pa.Table.from_pylist([value], schema=case.rows.schema)

    def ours(at: int) -> pa.Table:
        case.ours.append(row(at))
        return _ours(case.ours, case.queries[at], f"tenant = {tenant}")

    def peer(at: int) -> pa.Table:
        case.peer.add(row(at))
        return _peers(case.peer, case.queries[at], f"tenant = {tenant}")

    found: list[bool] = []

    def checked(call: Call) -> Call:
        def made(at: int) -> pa.Table:
            rows = call(at)
            found.append(last[0] in rows.column("id").to_pylist())
            return rows

        return made

    name = f"{case.prefix}append to one tenant and search it"
    _compare(report, name, {"lancepart": checked(ours), "LanceDB": checked(peer)}, None, queries=10)
    report.note(f"{name}: the new row was found {sum(found)} of {len(found)} times")


def _memory(report: Report, case: Case, folder: str, tenants: Mapping[str, int]) -> None:
    """What a process of its own holds after each kind of search, above what it held before."""
    held: dict[str, dict[str, float]] = {}
    for name in ("lancepart", "LanceDB", "pylance"):
        spawned = multiprocessing.get_context("spawn")
        reader, writer = spawned.Pipe(duplex=False)
        process = spawned.Process(target=_held, args=(name, folder, case.queries, case.texts, tenants, writer))
        process.start()
        held[name] = reader.recv()
        process.join()
    for kind in held["lancepart"]:
        shares = ", ".join(f"{name} {found[kind]:.0f} MiB" for name, found in held.items())
        report.note(f"{case.prefix}{kind}: memory that a process holds after it and those above, {shares}")


def _held(name: str, folder: str, queries: Any, texts: Sequence[str], tenants: Mapping[str, int], writer: Any) -> None:
    opened = {
        "lancepart": lambda: partial(_ours, lp.open_table(f"{folder}/ours")),
        "LanceDB": lambda: partial(_peers, lancedb.connect(f"{folder}/peer").open_table("t")),
        "pylance": lambda: partial(_plains, lance.dataset(f"{folder}/peer/t.lance")),
    }
    search, before, found = opened[name](), _resident(), {}
    large, middle, small = (f"tenant = {tenants[size]}" for size in ("large", "middle", "small"))
    kinds: dict[str, tuple[Sequence[Any], str | None, bool]] = {
        "small tenant from memory": (queries, small, True),
        "one middle tenant, ANN": (queries, middle, False),
        "one large tenant, ANN": (queries, large, False),
        "all tenants, ANN": (queries, None, False),
        "text, one tenant": (texts, large, False),
        "text, all tenants": (texts, None, False),
        "one middle tenant, exact": (queries, middle, True),
        "one large tenant, exact": (queries, large, True),
        "all tenants, exact": (queries, None, True),
    }
    for kind, (asked, where, exact) in kinds.items():
        for each in asked[:20]:
            search(each, where, exact=exact)
        found[kind] = (_resident() - before) / (1 << 20)
    writer.send(found)


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def _many_leaves(report: Report, folder: str) -> None:
    """A thousand small leaves, searched together by a table-wide index."""
    draw = np.random.default_rng(4)
    count = LEAVES * 50
    vectors = _clustered(draw, count, WIDTH)
    rows = pa.table(
        {
            "id": np.arange(count),
            "tenant": (np.arange(count) % LEAVES).astype(np.int32),
            "body": [f"word{n % 977} word{n % 311}" for n in range(count)],
            "v": pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), WIDTH),
        }
    )
    table = lp.create_table(f"{folder}/many", rows.schema, ["tenant"])
    table.append(rows)
    table.maintenance.create_index("v", scope="table", progress=False)
    queries, before = vectors[:QUERIES], _resident()
    truth = [_nearest(vectors, query) for query in queries]
    calls: dict[str, Call] = {
        "vector": lambda at: table.search(queries[at], "v", K, columns=COLUMNS).to_arrow(),
        "exact": lambda at: table.search(queries[at], "v", K, columns=COLUMNS, exact=True).to_arrow(),
        "text": lambda at: table.search(f"word{at} word{at % 311}", "body", K, columns=COLUMNS).to_arrow(),
    }
    for name, call in calls.items():
        started = time.perf_counter()
        call(0)
        first = 1000 * (time.perf_counter() - started)
        timed = [_timed(call, at) for at in range(QUERIES)]
        figures = _figures([spent for spent, _ in timed])
        shares = [len(near & set(found["id"].to_pylist())) / K for near, (_, found) in zip(truth, timed, strict=True)]
        recall = "" if name == "text" else f"; recall {np.mean(shares):.3f}"
        report.note(f"{LEAVES:,} leaves, {name} search: {figures}, the first {first:.1f} ms{recall}")
    report.note(f"{LEAVES:,} leaves: {(_resident() - before) / (1 << 20):.0f} MiB more after these searches")


def _nearest(vectors: Any, query: Any) -> set[int]:
    """The ids of the rows nearest to a query."""
    away = ((vectors.astype(np.float64) - query) ** 2).sum(axis=1)
    return set(np.argsort(away)[:K].tolist())


def _compare(
    report: Report,
    name: str,
    calls: dict[str, Call],
    truth: list[set[int]] | None,
    *,
    queries: int = QUERIES,
    warm: int = _FEW,
) -> None:
    """Time the calls in turn, after each was made a few times; for an index with all queries, which load its parts."""
    times: dict[str, list[float]] = {each: [] for each in calls}
    recalls: dict[str, list[float]] = {each: [] for each in calls}
    burnt = dict.fromkeys(calls, 0.0)
    for call in calls.values():
        for at in range(warm):
            call(at)
    for at in range(queries):
        for each, call in _turned(calls, at):
            used = cpu_seconds()
            spent, found = _timed(call, at)
            times[each].append(spent)
            burnt[each] += cpu_seconds() - used
            if truth is not None:
                recalls[each].append(len(truth[at] & set(found.column("id").to_pylist())) / max(1, len(truth[at])))
    figures = {each: timing(spent, burnt[each] / queries) for each, spent in times.items()}
    for peer, theirs in figures.items():
        if peer != "lancepart":
            headline = peer == "LanceDB" and name in HEADLINES
            report.add(name, figures["lancepart"], theirs, peer=peer, unit="ms", headline=headline)
    slowest = ", ".join(f"{each} {np.percentile(spent, 99):.1f} ms" for each, spent in times.items())
    found = ", ".join(f"{each} {np.mean(values):.3f}" for each, values in recalls.items() if values)
    report.note(f"{name}: 99th percentile {slowest}" + (f"; recall {found}" if found else ""))


def _turned(calls: dict[str, Call], at: int) -> Iterator[tuple[str, Call]]:
    named = list(calls.items())
    yield from named[at % len(named) :] + named[: at % len(named)]


def _timed(call: Call, at: int) -> tuple[float, pa.Table]:
    started = time.perf_counter()
    found = call(at)
    return 1000 * (time.perf_counter() - started), found


def _figures(times: Sequence[float]) -> str:
    return f"median {np.percentile(times, 50):.1f} ms, 99th percentile {np.percentile(times, 99):.1f} ms"
