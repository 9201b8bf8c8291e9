"""Answers about partitions: the tree, the map, the skew, and what a filter keeps of them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancepart.plan import planner
from lancepart.read.scan import Scan
from lancepart.report.leaf_frame import MEASURES, LeafFrame, Mask, SpecFrame
from lancepart.ui.explorer import Explorer
from lancepart.ui.params import Params

CELLS = 2_400
BARS = 160
Answer = dict[str, object]


def _opened(explorer: Explorer, params: Params) -> tuple[LeafFrame, list[Mask] | None]:
    """The leaves of the table at hand, and which of them a filter keeps, by spec."""
    table = explorer.requested(params)
    frame = explorer.frame(params.text("table", "."), table)
    where = params.where()
    return frame, None if where is None else [mask for mask, _ in _kept(frame, table.scan(where))]


def _kept(frame: LeafFrame, scan: Scan) -> list[tuple[Mask, tuple[str, ...]]]:
    """Which leaves of each spec version a filter keeps, and why; as columns, since there may be a million."""
    found = []
    for spec in frame.specs:
        known = scan.metadata.spec_of(spec.spec_id)
        assert known is not None
        rows, _, reasons = planner.kept(scan.snapshot, scan.metadata, known, scan.predicate)
        none = pa.array([], pa.string())
        ids = none if rows is None else rows.column("object_id").combine_chunks()
        found.append((spec.kept(ids), reasons))
    return found


def plan(explorer: Explorer, params: Params) -> Answer:
    """What a filter keeps and drops, and why; no leaf is opened."""
    table = explorer.requested(params)
    where = params.where()
    frame = explorer.frame(params.text("table", "."), table)
    kept = list(zip(frame.specs, _kept(frame, table.scan(where)), strict=True))
    sums = {name: sum(int(spec.sizes(name)[mask].sum()) for spec, (mask, _) in kept) for name in ("rows", "bytes")}
    return {
        "where": where,
        "version": frame.version,
        "kept": sum(int(mask.sum()) for _, (mask, _) in kept),
        "of": len(frame),
        **sums,
        "of_rows": frame.total("rows"),
        "of_bytes": frame.total("bytes"),
        "specs": [
            {"spec_id": spec.spec_id, "kept": int(mask.sum()), "of": spec.leaves.num_rows, "reasons": reasons}
            for spec, (mask, reasons) in kept
        ],
    }


def tree(explorer: Explorer, params: Params) -> Answer:
    """A page of one level of the partition tree: spec versions, then the values of one field after another."""
    frame, kept = _opened(explorer, params)
    if not params.text("spec"):
        nodes = [_top(each, None if kept is None else kept[at], frame) for at, each in enumerate(frame.specs)]
        return {"version": frame.version, "nodes": nodes, "total": len(nodes), "offset": 0}
    spec = frame.spec(params.number("spec", 0))
    mask = None if kept is None else kept[frame.specs.index(spec)]
    nodes, total = _children(spec, params, mask)
    return {"version": frame.version, "nodes": nodes, "total": total, "offset": params.number("offset", 0)}


def _top(spec: SpecFrame, kept: Mask | None, frame: LeafFrame) -> Answer:
    return {
        "spec": spec.spec_id,
        "path": [],
        "name": f"spec v{spec.spec_id}",
        "field": ", ".join(spec.fields) or "not partitioned",
        "leaves": spec.leaves.num_rows,
        **{name: int(spec.sizes(name).sum()) for name in MEASURES},
        "kept": None if kept is None else int(kept.sum()),
        "share": _share(int(spec.sizes("bytes").sum()), frame.total("bytes")),
        "leaf": None,
    }


def _children(spec: SpecFrame, params: Params, kept: Mask | None) -> tuple[list[Answer], int]:
    path, sort = params.path("path"), params.choice("sort", ("name", *MEASURES))
    level = len(path)
    inside = spec.beneath(path)
    if level >= len(spec.fields) or not inside.any():
        return [], 0
    grouped = _grouped(spec, inside, f"p{level}", kept)
    if sort != "name":
        order = np.argsort(-grouped[sort], kind="stable")
    elif kept is not None:
        order = np.argsort(grouped["kept"] == 0, kind="stable")
    else:
        order = np.arange(len(grouped["at"]))
    start = params.number("offset", 0)
    largest = max(int(grouped["bytes"].max()), 1)
    page = [_node(spec, path, grouped, at, largest) for at in order[start : start + params.limit(100, 500)]]
    return page, len(order)


def _grouped(spec: SpecFrame, inside: Mask, level: str, kept: Mask | None) -> Mapping[str, npt.NDArray[np.int64]]:
    """Leaves that share a value together, in the order in which the values come: where each value begins, and sums.

    The leaves are sorted, so that those of one value are neighbours.
    """
    at = np.flatnonzero(inside)
    starts = at[np.concatenate(([True], spec.differs(level)[at[1:] - 1]))]
    edges = np.searchsorted(at, starts)
    sums = {name: np.add.reduceat(spec.sizes(name)[at], edges) for name in MEASURES}
    if kept is not None:
        sums["kept"] = np.add.reduceat(kept[at].astype(np.int64), edges)
    return {"at": starts, "leaves": np.diff(np.append(edges, len(at))), **sums}


def _node(
    spec: SpecFrame, path: Sequence[str | None], grouped: Mapping[str, npt.NDArray[np.int64]], which: int, largest: int
) -> Answer:
    level = len(path)
    at = int(grouped["at"][which])
    value = spec.leaves.column(f"p{level}")[at].as_py()
    is_leaf = level + 1 == len(spec.fields)
    return {
        "spec": spec.spec_id,
        "path": [*path, value],
        "name": "NULL" if value is None else value,
        "field": spec.fields[level],
        "leaves": int(grouped["leaves"][which]),
        **{name: int(grouped[name][which]) for name in MEASURES},
        "kept": int(grouped["kept"][which]) if "kept" in grouped else None,
        "share": _share(int(grouped["bytes"][which]), largest),
        "leaf": spec.leaves.column("object_id")[at].as_py() if is_leaf else None,
    }


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


def map_of(explorer: Explorer, params: Params) -> Answer:
    """All leaves as at most a few thousand cells in the order of the tree; a cell may stand for several leaves."""
    frame, kept = _opened(explorer, params)
    measure = params.choice("measure", MEASURES)
    cells, names = [], []
    count = max(len(frame), 1)
    for at, spec in enumerate(frame.specs):
        size = spec.leaves.num_rows
        if not size:
            continue
        share = max(1, min(size, round(CELLS * size / count)))
        edges = np.linspace(0, size, share + 1).astype(np.int64)
        sizes = np.add.reduceat(spec.sizes(measure), edges[:-1])
        lit = None if kept is None else np.add.reduceat(kept[at].astype(np.int64), edges[:-1])
        for cell, (start, end) in enumerate(itertools.pairwise(edges)):
            cells.append([int(end - start), int(sizes[cell]), None if lit is None else int(lit[cell])])
            names.append(_cell_name(spec, int(start), int(end)))
    return {"version": frame.version, "measure": measure, "leaves": len(frame), "cells": cells, "names": names}


def _cell_name(spec: SpecFrame, start: int, end: int) -> str:
    first = _path_text(spec, start)
    return first if end - start == 1 else f"{first} … {_path_text(spec, end - 1)} ({end - start:,} leaves)"


def _path_text(spec: SpecFrame, at: int) -> str:
    values = [spec.leaves.column(level)[at].as_py() for level in spec.levels]
    return " / ".join(f"{field}={'NULL' if v is None else v}" for field, v in zip(spec.fields, values, strict=True))


def skew(explorer: Explorer, params: Params) -> Answer:
    """The sizes of all leaves, largest first, in at most a few hundred bars, and figures of how uneven they are."""
    frame, _ = _opened(explorer, Params({key: value for key, value in params.given.items() if key != "where"}))
    measure = params.choice("measure", MEASURES)
    sizes = np.sort(frame.sizes(measure))[::-1]
    edges = np.unique(np.linspace(0, len(sizes), min(BARS, len(sizes)) + 1).astype(np.int64))
    means = [float(sizes[a:b].mean()) for a, b in itertools.pairwise(edges)]
    return {
        "version": frame.version,
        "measure": measure,
        "leaves": len(sizes),
        "bars": means,
        "largest": int(sizes[0]) if len(sizes) else 0,
        "median": float(np.median(sizes)) if len(sizes) else 0.0,
        "smallest": int(sizes[-1]) if len(sizes) else 0,
        "empty": int((frame.sizes("rows") == 0).sum()),
        "top_share": _top_share(sizes),
        "top": _largest(frame, measure),
    }


def _top_share(sizes: npt.NDArray[np.int64]) -> float:
    """What share of everything the largest tenth of the leaves has."""
    whole = int(sizes.sum())
    return _share(int(sizes[: max(1, len(sizes) // 10)].sum()), whole) if whole else 0.0


def _largest(frame: LeafFrame, measure: str, count: int = 8) -> list[Answer]:
    found = [
        (int(spec.sizes(measure)[at]), spec, int(at))
        for spec in frame.specs
        for at in np.argsort(spec.sizes(measure))[::-1][:count]
    ]
    found.sort(key=lambda each: -each[0])
    return [{"name": _path_text(spec, at), "spec": spec.spec_id, "size": size} for size, spec, at in found[:count]]
