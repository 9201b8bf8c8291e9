"""What a suite measures: figures beside a peer's, with their spread and the CPU time that they took."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

QUICK = bool(os.environ.get("LANCEPART_BENCH_QUICK"))
"""Whether small sizes are wanted: `make bench QUICK=1`."""
LARGE = bool(os.environ.get("LANCEPART_BENCH_LARGE")) and not QUICK
"""Whether large sizes are wanted, which take hours: `make bench LARGE=1`."""


def sized(full: int, small: int, variable: str | None = None, *, large: int | None = None) -> int:
    """How much to measure: the full size, the small or the large one; an environment variable goes before."""
    given = os.environ.get(variable) if variable else None
    if given:
        return int(given)
    return small if QUICK else large if LARGE and large is not None else full


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Repeated measurements of one thing, and the CPU seconds of one repetition where they were measured."""

    values: tuple[float, ...]
    cpu: float | None = None

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def spread(self) -> tuple[float, float]:
        """The quartiles; of few repetitions the least and the greatest."""
        if len(self.values) < 5:
            return min(self.values), max(self.values)
        low, _, high = statistics.quantiles(self.values, n=4)
        return low, high

    def scaled(self, factor: float) -> Timing:
        """The same in another unit; CPU time stays in seconds."""
        return Timing(values=tuple(value * factor for value in self.values), cpu=self.cpu)


@dataclass(frozen=True, kw_only=True)
class Record:
    """One thing that was measured, ours beside a peer's."""

    name: str
    peer: str
    unit: str
    ours: Timing
    theirs: Timing
    better: str = "lower"
    headline: bool = False

    @property
    def speed(self) -> float | None:
        """How many times the peer's speed ours is; None where one of both is zero."""
        return self._ratio(self.ours.median, self.theirs.median)

    @property
    def speeds(self) -> tuple[float, float] | None:
        """The least and the greatest ratio that the spreads of both allow."""
        ours, theirs = self.ours.spread, self.theirs.spread
        ends = sorted(filter(None, (self._ratio(ours[0], theirs[1]), self._ratio(ours[1], theirs[0]))))
        return (ends[0], ends[-1]) if ends else None

    def _ratio(self, ours: float, theirs: float) -> float | None:
        if not ours or not theirs:
            return None
        return ours / theirs if self.better == "higher" else theirs / ours

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Record:
        timings = {
            name: Timing(values=tuple(given[name]["values"]), cpu=given[name]["cpu"]) for name in ("ours", "theirs")
        }
        return cls(**{**given, **timings})


@dataclass
class Report:
    """Collects what a suite measures, and prints it as it comes."""

    title: str
    records: list[Record] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(
        self,
        name: str,
        ours: Timing | float,
        theirs: Timing | float,
        *,
        peer: str,
        unit: str,
        better: str = "lower",
        headline: bool = False,
    ) -> None:
        """A figure beside a peer's; ``better`` says whether the lower or the higher one is."""
        own, other = (each if isinstance(each, Timing) else Timing(values=(float(each),)) for each in (ours, theirs))
        record = Record(name=name, peer=peer, unit=unit, ours=own, theirs=other, better=better, headline=headline)
        self.records.append(record)
        speed = "" if record.speed is None else f"{record.speed:.2f} times the speed of {peer}"
        print(f"{name:<58} {own.median:>10.2f} {other.median:>10.2f} {unit:<9} {speed}", flush=True)

    def compare(
        self,
        name: str,
        ours: Callable[[], object],
        peers: Mapping[str, Callable[[], object]],
        *,
        runs: int,
        warm: int = 1,
        unit: str = "ms",
        headline: bool = False,
    ) -> None:
        """Measure ours and all peers in turn, and add a figure beside each peer."""
        found = measure({"": ours, **peers}, runs=runs, warm=warm)
        scaled = {who: each.scaled(1_000 if unit == "ms" else 1) for who, each in found.items()}
        for peer in peers:
            self.add(name, scaled[""], scaled[peer], peer=peer, unit=unit, headline=headline)

    def note(self, line: str) -> None:
        """A sentence that belongs to the figures."""
        self.notes.append(line)
        print(line, flush=True)

    def to_json(self) -> dict[str, Any]:
        return {"title": self.title, "records": [asdict(each) for each in self.records], "notes": self.notes}


def measure(actions: Mapping[str, Callable[[], object]], *, runs: int, warm: int = 1) -> dict[str, Timing]:
    """Seconds of each action, all in turn, so that whatever else the machine does hits them alike."""
    spent: dict[str, list[float]] = {name: [] for name in actions}
    burnt = dict.fromkeys(actions, 0.0)
    for turn in range(warm + runs):
        for name, action in actions.items():
            used, start = cpu_seconds(), time.perf_counter()
            action()
            if turn >= warm:
                spent[name].append(time.perf_counter() - start)
                burnt[name] += cpu_seconds() - used
    return {name: Timing(values=tuple(values), cpu=burnt[name] / runs) for name, values in spent.items()}


def together(rounds: Sequence[Timing]) -> Timing:
    """The same thing measured in several rounds, as one."""
    burnt = [each.cpu for each in rounds if each.cpu is not None]
    values = tuple(value for each in rounds for value in each.values)
    return Timing(values=values, cpu=statistics.mean(burnt) if burnt else None)


def cpu_seconds() -> float:
    """CPU time of this process, of the children that have ended, and of those that run, such as Spark's JVM."""
    spent = os.times()
    return time.process_time() + spent.children_user + spent.children_system + sum(map(_cpu_of, _descendants()))


def _descendants() -> list[int]:
    """The processes below this one; none where there is no /proc."""
    found, ahead = [], [os.getpid()]
    while ahead:
        at = ahead.pop()
        for path in Path(f"/proc/{at}/task").glob("*/children"):
            try:
                children = [int(each) for each in path.read_text().split()]
            except OSError:
                continue
            found += children
            ahead += children
    return found


def _cpu_of(process: int) -> float:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def timing(values: Sequence[float], cpu: float | None = None) -> Timing:
    """Measurements that a suite took by itself."""
    return Timing(values=tuple(values), cpu=cpu)
