"""``table.plot``: partitions, skew and history as Matplotlib charts."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING, Literal

from lancepart.errors import InvalidInputError
from lancepart.maintain.inspect import Inspect
from lancepart.model.optional import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Measure = Literal["bytes", "rows", "fragments"]
MEASURES: tuple[Measure, ...] = ("bytes", "rows", "fragments")
_LONGEST = 60
_BAR, _LINE, _MINUS = "#0f6f6a", "#e08a00", "#a5281e"


class Plots:
    """Charts of a table at one snapshot; each call gives the axes, for titles and colours of one's own."""

    def __init__(self, inspect: Inspect) -> None:
        self._inspect = inspect

    def partitions(self, measure: Measure = "bytes", most: int = 30, *, ax: Axes | None = None) -> Axes:
        """The largest partitions as bars."""
        found = sorted(self._sizes(measure), key=lambda each: each[1], reverse=True)
        shown = found[: max(1, most)][::-1]
        axes = _axes(ax, height=max(2.0, 0.28 * len(shown) + 1.2))
        axes.barh(range(len(shown)), [size for _, size in shown], color=_BAR)
        axes.set_yticks(range(len(shown)), [_short(name) for name, _ in shown], parse_math=False)
        more = f", the largest {len(shown)} of {len(found):,}" if len(found) > len(shown) else ""
        return _named(axes, f"Partitions by {measure}{more}", x=measure)

    def skew(self, measure: Measure = "bytes", *, ax: Axes | None = None) -> Axes:
        """The sizes of all partitions, largest first, with the median."""
        sizes = sorted((size for _, size in self._sizes(measure)), reverse=True)
        axes = _axes(ax)
        axes.fill_between(range(len(sizes)), sizes, step="mid", color=_BAR, alpha=0.75)
        if sizes:
            middle = median(sizes)
            times = f": the largest has {sizes[0] / middle:.1f} times as much" if middle else ""
            axes.axhline(middle, color=_LINE, linestyle="--", label=f"median{times}")
            axes.legend(frameon=False)
        return _named(axes, f"Skew of {len(sizes):,} partitions", x="partitions, largest first", y=measure)

    def history(self, most: int = 200, *, ax: Axes | None = None) -> Axes:
        """The rows that the newest snapshots added and deleted."""
        rows = self._inspect.snapshots(limit=max(1, most)).to_pylist()
        axes, at = _axes(ax), list(range(len(rows)))
        axes.bar(at, [row["rows_added"] or 0 for row in rows], color=_BAR, label="added")
        axes.bar(at, [-(row["rows_deleted"] or 0) for row in rows], color=_MINUS, label="deleted")
        _ticks(axes, [str(row["version"]) for row in rows])
        axes.axhline(0, color="#888888", linewidth=0.8)
        axes.legend(frameon=False)
        return _named(axes, f"Rows changed by the newest {len(rows):,} snapshots", x="snapshot", y="rows")

    def _sizes(self, measure: str) -> list[tuple[str, int]]:
        if measure not in MEASURES:
            raise InvalidInputError(f"measure is {measure!r}: use one of {', '.join(MEASURES)}")
        found = []
        for row in self._inspect.partitions().to_pylist():
            values = [f"{key}={'NULL' if value is None else value}" for key, value in row["partition"]]
            found.append((f"v{row['spec_id']} {' '.join(values)}".strip(), int(row[measure] or 0)))
        return found


def _axes(ax: Axes | None, *, height: float = 3.6) -> Axes:
    if ax is not None:
        return ax
    require("matplotlib", "table.plot")
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(9, height), layout="constrained")[1]


def _named(axes: Axes, title: str, *, x: str, y: str = "") -> Axes:
    axes.set_title(title, loc="left")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _short(name: str) -> str:
    """A name that leaves room for its bar."""
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _ticks(axes: Axes, names: Sequence[str]) -> None:
    """Name at most a dozen bars."""
    step = max(1, len(names) // 12)
    axes.set_xticks(range(0, len(names), step), names[::step])
