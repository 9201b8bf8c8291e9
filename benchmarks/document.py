"""The report of all suites: Markdown with tables, and a plot for each suite as an SVG file beside it."""

from __future__ import annotations

import math
import os
import platform
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from html import escape
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.report import Record, Timing

LIBRARIES = (
    "lancepart", "pylance", "lancedb", "lance-namespace", "datafusion", "duckdb", "pyarrow", "pyspark", "deltalake",
    "pyiceberg", "pyiceberg-core", "numpy",
)  # fmt: skip
SIZES = """## Sizes

`make bench` takes about 25 minutes on two cores, `make bench QUICK=1` five, `make bench LARGE=1` hours. One suite
runs by `python -m benchmarks SUITE`. Environment variables set single sizes:

| variable | suite | size |
| --- | --- | --- |
| `LANCEPART_ROWS` | embedded | rows of the table |
| `LANCEPART_BENCH_ROWS` | search | rows of 64 numbers, and then no 1 M of 128 |
| `LANCEPART_BENCH_ORDERS` | join | rows of the larger table; the other has a tenth |
| `LANCEPART_BENCH_PARTITIONS` | pruning | partitions of the largest table |
| `LANCEPART_BENCH_SPARK_ROWS` | spark, upkeep | rows of the table |
| `LANCEPART_BENCH_BATCHES` | upkeep | batches of the stream |
| `LANCEPART_TENANTS` | tenants | tenants, a partition each |
| `LANCEPART_TPC` | tpc | the scale factor of TPC-H |
| `LANCEPART_TPCDS` | tpc | the scale factor of TPC-DS, of which all queries are run then: at 1 about half an hour |
| `LANCEPART_TPCH` | tpch | the scale factor; 1 is about a gigabyte |
"""
README_BLOCK = re.compile(r"(<!-- figures: made by make bench -->\n).*?(<!-- end of figures -->)", re.DOTALL)


def _machine() -> str:
    """Cores, processor and memory; nothing that names the machine itself."""
    found = [f"{os.cpu_count()} cores"]
    try:
        models = re.findall(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
        found += models[:1]
        found.append(f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB of memory")
    except (OSError, ValueError):
        pass
    return ", ".join([*found, platform.system()])


def _versions() -> str:
    """Python and the libraries that are measured."""
    found = ", ".join(f"{name} {found}" for name in LIBRARIES if (found := _version(name)))
    return f"Python {platform.python_version()}, {found}"


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a suite ended in: its figures, and why it failed if it did."""

    suite: str
    summary: str
    records: tuple[Record, ...]
    notes: tuple[str, ...] = ()
    failure: str | None = None
    seconds: float = 0.0
    loads: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, kw_only=True)
class Run:
    """All suites of one run, and where they ran."""

    quick: bool = False
    large: bool = False
    outcomes: tuple[Outcome, ...] = ()
    day: str = field(default_factory=lambda: f"{datetime.now(UTC):%Y-%m-%d}")
    machine: str = field(default_factory=_machine)
    versions: str = field(default_factory=_versions)

    @property
    def command(self) -> str:
        return "make bench" + (" QUICK=1" if self.quick else " LARGE=1" if self.large else "")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Run:
        """The run that `to_json` wrote."""
        outcomes = tuple(
            Outcome(
                **{
                    **each,
                    "records": tuple(map(Record.from_json, each["records"])),
                    "notes": tuple(each["notes"]),
                    "loads": tuple(each["loads"]),
                }
            )
            for each in given["outcomes"]
        )
        return cls(**{**given, "outcomes": outcomes})


def write_document(out: Path, run: Run) -> None:
    """Write the page and its plots; of a page in the project's docs also the README's figures."""
    plots = out.parent / out.stem
    plots.mkdir(parents=True, exist_ok=True)
    parts = [_head(run), *overview(run.outcomes)]
    for outcome in run.outcomes:
        if outcome.records:
            (plots / f"{outcome.suite}.svg").write_text(plot(outcome.suite, outcome.records))
        parts.append(section(outcome, plots.name))
    out.write_text("\n".join([*parts, SIZES]))
    readme = out.parent.parent / "README.md"
    if out.parent.name == "docs" and readme.exists():
        readme.write_text(README_BLOCK.sub(lambda found: found[1] + figures(run) + found[2], readme.read_text()))


def _head(run: Run) -> str:
    size = "a quick run with small sizes" if run.quick else "large sizes" if run.large else "a full run"
    minutes = sum(each.seconds for each in run.outcomes) / 60
    return f"""# Benchmarks

Made by `{run.command}` on {run.day}: {size}, {minutes:.0f} minutes in all. Every figure is of
this one run; none is written by hand. A speed of 2 means twice as fast as the peer, 0.5 half as fast. Figures are
medians; behind them in brackets are the quartiles, or the least and the greatest of fewer than five repetitions. A
figure without brackets was measured once, because that takes long (the building of indices, and more in quick runs),
or is a mean of others, whose spread is theirs. CPU is the seconds of one repetition, of rates those of one commit,
ours and the peer's, of all processes together, where they were measured.

Machine: {run.machine}.

Versions: {run.versions}.
"""


def overview(outcomes: Sequence[Outcome]) -> list[str]:
    """For each suite and peer the geometric mean of its speeds, and of the peer's CPU seconds over ours."""
    lines = [
        "## Overview",
        "",
        "Geometric means over the figures of a suite; CPU is the peer's seconds over ours, so 2 means half the work.",
        "",
        "| suite | peer | figures | speed | CPU |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for outcome in outcomes:
        for peer in dict.fromkeys(each.peer for each in outcome.records):
            own = [each for each in outcome.records if each.peer == peer and each.unit != "relative"]
            speeds = [each.speed for each in own if each.speed]
            if speeds:
                used = [each.theirs.cpu / each.ours.cpu for each in own if each.theirs.cpu and each.ours.cpu]
                cells = [f"[{outcome.suite}](#{outcome.suite})", peer, str(len(speeds)), _mean(speeds), _mean(used)]
                lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def _mean(values: Sequence[float]) -> str:
    return f"{statistics.geometric_mean(values):.2f}" if values else "–"


def section(outcome: Outcome, plots: str) -> str:
    """A suite: what it is, its plot, its table, its notes."""
    lines = [f"## {outcome.suite}", "", outcome.summary, ""]
    if outcome.failure:
        lines += [f"**This suite failed**: `{_one_line(outcome.failure)}`. Figures from before the failure follow.", ""]
    if outcome.records:
        lines += [f"![Speed of lancepart beside its peers: {outcome.suite}]({plots}/{outcome.suite}.svg)", ""]
        lines += table(outcome.records)
    lines += [f"- {_one_line(note)}" for note in outcome.notes] + ([""] if outcome.notes else [])
    first, last = outcome.loads
    lines += [f"{outcome.seconds:.0f} s; load of the machine {first:.1f} at the start, {last:.1f} at the end.", ""]
    return "\n".join(lines)


def table(records: Sequence[Record]) -> list[str]:
    """Figures as a Markdown table."""
    lines = [
        "| what | peer | speed | lancepart | peer's | unit | CPU s |",
        "| --- | --- | ---: | ---: | ---: | --- | ---: |",
    ]
    for each in records:
        speed = "–" if each.speed is None else f"{each.speed:.2f}"
        cells = [each.name, each.peer, speed, _spread(each.ours), _spread(each.theirs), each.unit]
        cells.append(f"{_cpu(each.ours)} / {_cpu(each.theirs)}")
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return [*lines, ""]


def figures(run: Run) -> str:
    """The few figures that the README shows: a row each, with all its peers."""
    lines = ["", "| suite | what | lancepart | peers | times their speed |", "| --- | --- | ---: | ---: | ---: |"]
    for outcome in run.outcomes:
        shown = [record for record in outcome.records if record.headline]
        for name in dict.fromkeys(record.name for record in shown):
            beside = [record for record in shown if record.name == name]
            lines.append(f"| {' | '.join([_link(outcome.suite), name, *_beside(beside)])} |")
    size = ", small sizes" if run.quick else ""
    return "\n".join([*lines, "", f"Made by `{run.command}`{size}, on {run.day}, {run.machine}.", "", ""])


def _link(suite: str) -> str:
    return f"[{suite}](docs/benchmarks.md#{suite})"


def _beside(records: Sequence[Record]) -> list[str]:
    """One figure beside its peers': ours, theirs, and how many times as fast ours is."""
    relative = records[0].unit == "relative"
    ours = "–" if relative else f"{number(records[0].ours.median)} {records[0].unit}"
    peers = [each.peer if relative else f"{number(each.theirs.median)} {each.unit} ({each.peer})" for each in records]
    speeds = ["–" if each.speed is None else f"{each.speed:.2f}" for each in records]
    return [ours, ", ".join(peers), ", ".join(speeds)]


def number(value: float) -> str:
    """Three digits that count.

    >>> number(1234.5), number(12.345), number(0.01234), number(0)
    ('1,234', '12.3', '0.0123', '0')
    """
    if not value:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}"


def _spread(timing: Timing) -> str:
    """The median, and the spread behind it where there is one."""
    ends = "–".join(map(number, timing.spread))
    return number(timing.median) + (f" ({ends})" if len(timing.values) > 1 else "")


def _cpu(timing: Timing) -> str:
    return "–" if timing.cpu is None else number(timing.cpu)


def _one_line(text: str) -> str:
    """One line without paths of this machine."""
    return re.sub(r"(?<![\w.:])/[\w./-]{3,}", "…", " ".join(text.split()))[:300]


def plot(title: str, records: Sequence[Record]) -> str:
    """How many times the peer's speed ours is, on a logarithmic axis, with the range that the spreads allow."""
    shown = [each for each in records if each.speed]
    ends = [end for each in shown for end in (*(each.speeds or ()), each.speed or 1)]
    reach = max(2.0, *(max(end, 1 / end) for end in ends)) if ends else 2.0
    left, wide, line, top = 430, 380, 22, 34

    def x(speed: float) -> float:
        return left + wide / 2 * (1 + math.log(speed) / math.log(reach))

    parts = [_axis(x, reach, top, top + line * len(shown))]
    for n, each in enumerate(shown):
        y, speed = top + n * line, each.speed or 1
        low, high = each.speeds or (speed, speed)
        kind = "fast" if speed >= 1 else "slow"
        begin, end = sorted((x(1), x(speed)))
        parts += [
            f'<text x="{left - 10}" y="{y + 14}" text-anchor="end">{escape(_cut(f"{each.name} · {each.peer}"))}</text>',
            f'<rect class="{kind}" x="{begin:.1f}" y="{y + 4}" width="{max(1.0, end - begin):.1f}" height="12"/>',
            f'<line class="spread" x1="{x(low):.1f}" y1="{y + 10}" x2="{x(high):.1f}" y2="{y + 10}"/>',
            f'<text x="{left + wide + 12}" y="{y + 14}">{speed:.2f}</text>',
        ]
    height = top + line * len(shown) + 10
    label = f"{title}: times the speed of the peer"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 880 {height}" role="img" aria-label="{escape(label)}">'
        "<style>svg { background: #fff; font: 12px sans-serif; } text { fill: #1c2733; } .fast { fill: #0b6fa4; }"
        " .slow { fill: #b4632a; } .spread { stroke: #1c2733; stroke-width: 1.5; } .grid { stroke: #d5dbe1; }"
        f" .one {{ stroke: #56636f; }}</style>{''.join(parts)}</svg>\n"
    )


def _axis(x: Callable[[float], float], reach: float, top: float, bottom: float) -> str:
    steps = [step for step in (1, 2, 5, 10, 20, 50, 100, 1_000, 10_000) if step <= reach]
    marks = sorted({1 / step for step in steps} | set(map(float, steps)))
    kept = [mark for n, mark in enumerate(marks) if len(marks) <= 9 or mark == 1 or n % 2 == 0]
    return "".join(
        f'<line class="{"one" if mark == 1 else "grid"}" x1="{x(mark):.1f}" y1="{top - 6}"'
        f' x2="{x(mark):.1f}" y2="{bottom}"/>'
        f'<text x="{x(mark):.1f}" y="{top - 12}" text-anchor="middle">{mark:g}×</text>'
        for mark in kept
    )


def _cut(text: str) -> str:
    return text if len(text) <= 68 else text[:67] + "…"
