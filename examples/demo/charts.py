"""Charts as SVG, drawn by hand so that the report needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from examples.demo.steps import Step

WIDTH = 860


def steps_chart(steps: Sequence[Step]) -> str:
    """Two bars for each step that both sides can do, in seconds."""
    both = [step for step in steps if step.parquet is not None]
    longest = max(max(step.ours, step.parquet or 0) for step in both)
    left, line = 300, 46
    parts = []
    for n, step in enumerate(both):
        top = n * line
        parts.append(f'<text x="{left - 12}" y="{top + 22}" text-anchor="end">{escape(step.title)}</text>')
        for name, value, at in (("ours", step.ours, top + 4), ("other", step.parquet or 0, top + 21)):
            wide = max(1.5, value / longest * (WIDTH - left - 80))
            parts.append(f'<rect class="{name}" x="{left}" y="{at}" width="{wide:.1f}" height="15" rx="2"/>')
            parts.append(f'<text class="small" x="{left + wide + 6:.1f}" y="{at + 12}">{value:.2f} s</text>')
    return _svg(parts, len(both) * line, "Seconds of each step with lancepart and with Parquet")


def tenants_chart(tenants: Sequence[tuple[str, int]]) -> str:
    """A bar for each tenant: how uneven they are."""
    most, left, line = max(count for _, count in tenants), 90, 18
    parts = []
    for n, (name, count) in enumerate(tenants):
        wide = max(1.5, count / most * (WIDTH - left - 90))
        parts.append(f'<text class="small" x="{left - 8}" y="{n * line + 12}" text-anchor="end">{escape(name)}</text>')
        parts.append(f'<rect class="ours" x="{left}" y="{n * line + 1}" width="{wide:.1f}" height="14" rx="2"/>')
        parts.append(f'<text class="small" x="{left + wide + 6:.1f}" y="{n * line + 12}">{count:,}</text>')
    return _svg(parts, len(tenants) * line + 4, "Rows of each tenant")


def leaves_chart(leaves: Sequence[tuple[Sequence[str | None], bool]]) -> str:
    """A cell for each leaf, tenants across and spans of time down; the leaves that are read are filled."""
    spans = sorted({_span(values) for values, _ in leaves})
    tenants = sorted({str(values[0]) for values, _ in leaves})
    left, cell, high = 80, (WIDTH - 90) / len(tenants), 22
    parts = [
        f'<text class="small" x="{left - 8}" y="{n * high + 15}" text-anchor="end">{span}</text>'
        for n, span in enumerate(spans)
    ]
    for values, kept in leaves:
        x, y = left + tenants.index(str(values[0])) * cell, spans.index(_span(values)) * high
        kind, title = ("ours", "read") if kept else ("idle", "skipped")
        parts.append(
            f'<rect class="{kind}" x="{x:.1f}" y="{y}" width="{cell - 3:.1f}" height="{high - 3}" rx="2">'
            f"<title>{escape(str(values[0]))}, {_span(values)}: {title}</title></rect>"
        )
    for n in range(0, len(tenants), 4):
        label = escape(tenants[n])
        parts.append(f'<text class="small" x="{left + n * cell:.1f}" y="{len(spans) * high + 14}">{label}</text>')
    return _svg(parts, len(spans) * high + 20, "Leaves that are read")


def _span(values: Sequence[str | None]) -> str:
    return f"{values[1]}-{int(values[2]):02d}" if len(values) > 2 and values[2] else str(values[1])


def batches_chart(batches: Mapping[str, Sequence[int]]) -> str:
    """The milliseconds of each batch of the stream, a line a side."""
    left, high = 60, 180
    most = _above(max(max(values) for values in batches.values()))
    parts = [f'<line class="axis" x1="{left}" y1="{high}" x2="{WIDTH - 20}" y2="{high}"/>']
    for part in range(5):
        y = high - part / 4 * (high - 20)
        parts.append(
            f'<text class="small" x="{left - 8}" y="{y + 4:.0f}" text-anchor="end">{most * part / 4:,.0f}</text>'
        )
        parts.append(f'<line class="grid" x1="{left}" y1="{y:.0f}" x2="{WIDTH - 20}" y2="{y:.0f}"/>')
    for name, values in batches.items():
        step = (WIDTH - left - 60) / max(1, len(values) - 1)
        points = [(left + 20 + n * step, high - value / most * (high - 20)) for n, value in enumerate(values)]
        kind = "ours" if name == "lancepart" else "other"
        parts.append(f'<polyline class="{kind}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>')
        parts += [f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>' for x, y in points]
    for n in range(len(next(iter(batches.values())))):
        x = left + 20 + n * (WIDTH - left - 60) / max(1, len(next(iter(batches.values()))) - 1)
        parts.append(f'<text class="small" x="{x:.0f}" y="{high + 18}" text-anchor="middle">batch {n + 1}</text>')
    return _svg(parts, high + 26, "Milliseconds of each batch")


def _above(value: float) -> int:
    """A round number that a scale of four steps can end with."""
    step = 10 ** max(0, len(str(int(value))) - 2) * 4
    return max(4, -(-int(value + 1) // step) * step)


def _svg(parts: Sequence[str], height: float, label: str) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{label}">{"".join(parts)}</svg>'
