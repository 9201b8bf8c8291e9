"""The report of the demo: one HTML file with its plots inside, which asks nothing of the network."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from html import escape
from pathlib import Path

import lancepart as lp
from examples.demo import charts
from examples.demo.screen import verdict
from examples.demo.steps import Step

STYLE = """
:root { --ink: #1c2733; --soft: #56636f; --paper: #fff; --card: #f4f6f8; --line: #d5dbe1; --ours: #0b6fa4;
  --other: #b4632a; --idle: #dfe4e9; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ebf0; --soft: #a6b2bd; --paper: #14191f; --card: #1e252d;
  --line: #36414c; --ours: #4db2e6; --other: #e79a63; --idle: #2d3741; } }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 62rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; } h2 { margin-top: 2.4rem; font-size: 1.25rem; }
p.soft, figcaption { color: var(--soft); }
.cards { display: flex; flex-wrap: wrap; gap: .8rem; } .cards div { background: var(--card); padding: .7rem 1.1rem;
  border-radius: .5rem; } .cards b { display: block; font-size: 1.4rem; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: .35rem .6rem;
  border-bottom: 1px solid var(--line); vertical-align: top; } td.n, th.n { text-align: right; white-space: nowrap; }
td ul { margin: .2rem 0 0; padding-left: 1.1rem; color: var(--soft); font-size: .88rem; overflow-wrap: anywhere; }
pre { background: var(--card); padding: .8rem; overflow-x: auto; font-size: .78rem; border-radius: .5rem; }
figure { margin: 1rem 0; } svg { width: 100%; height: auto; } svg text { fill: var(--ink); font-size: 13px; }
svg text.small { font-size: 11.5px; fill: var(--soft); } rect.ours, circle.ours { fill: var(--ours); }
rect.other, circle.other { fill: var(--other); } rect.idle { fill: var(--idle); }
polyline { fill: none; stroke-width: 2; }
polyline.ours { stroke: var(--ours); } polyline.other { stroke: var(--other); }
@media (max-width: 40rem) { table { display: block; overflow-x: auto; } }
line.axis { stroke: var(--soft); } line.grid { stroke: var(--line); }
.key span { display: inline-block; width: .8rem; height: .8rem; border-radius: 2px; margin: 0 .35rem 0 .9rem; }
"""
KEY = (
    '<p class="key soft"><span style="background: var(--ours)"></span>lancepart'
    '<span style="background: var(--other)"></span>Hive-partitioned Parquet</p>'
)


def write_page(path: Path, steps: Sequence[Step], *, rows: int, spent: float) -> None:
    """Write the report."""
    body = [
        "<h1>lancepart on Spark</h1>",
        '<p class="soft">What <code>make demo</code> did, each step beside the same step on Hive-partitioned Parquet, '
        "in one Spark session, one run. Queries show the better of two runs.</p>",
        _cards(steps, rows, spent),
        "<h2>Seconds of each step</h2>",
        KEY,
        f"<figure>{charts.steps_chart(steps)}</figure>",
        _table(steps),
        *_queries(steps),
        *_rest(steps),
    ]
    text = "\n".join(body)
    path.write_text(
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>lancepart on Spark: the demo's report</title>\n<style>{STYLE}</style></head>\n"
        f"<body>\n{text}\n</body></html>\n"
    )


def _cards(steps: Sequence[Step], rows: int, spent: float) -> str:
    leaves = next(step.data["leaves"] for step in steps if "leaves" in step.data)
    history = next(step.data["history"] for step in steps if "history" in step.data)
    cards = {
        "events": f"{rows:,}",
        "partitions": f"{len(leaves)}",
        "snapshots": f"{len(history)}",
        "seconds in all": f"{spent:.0f}",
        f"cores, Python {platform.python_version()}": f"{os.cpu_count()}",
        "version of lancepart": lp.__version__,
    }
    found = "".join(f"<div><b>{value}</b>{escape(name)}</div>" for name, value in cards.items())
    return f'<div class="cards">{found}</div>'


def _table(steps: Sequence[Step]) -> str:
    lines = []
    for step in steps:
        notes = "".join(f"<li>{escape(line)}</li>" for line in step.lines)
        other = "–" if step.parquet is None else f"{step.parquet:.2f} s"
        lines.append(
            f"<tr><td>{escape(step.title)}<ul>{notes}</ul></td><td class=n>{step.ours:.2f} s</td>"
            f"<td class=n>{other}</td><td>{escape(verdict(step))}</td></tr>"
        )
    head = "<tr><th>step</th><th class=n>lancepart</th><th class=n>Parquet</th><th>compared</th></tr>"
    return f"<table>{head}{''.join(lines)}</table>"


def _queries(steps: Sequence[Step]) -> list[str]:
    """What each query read: a cell for each leaf."""
    found = [
        "<h2>Which partitions the queries read</h2>",
        '<p class="soft">Each cell is a leaf, the Lance table of one partition: those of 2025 by tenant and year, '
        "those of 2026 by tenant and month. The filter names only the tenant and the time.</p>",
    ]
    for step in steps:
        if "leaves" in step.data:
            kept = sum(each for _, each in step.data["leaves"])
            files, every = step.data["files"]
            caption = f"{kept} of {len(step.data['leaves'])} leaves; Parquet opens {files} of {every} files"
            chart = charts.leaves_chart(step.data["leaves"])
            found.append(f"<h3>{escape(step.title)}</h3><figure>{chart}<figcaption>{caption}</figcaption></figure>")
    return found


def _rest(steps: Sequence[Step]) -> list[str]:
    """The stream, the join's plans, the tenants and the history."""
    data = {name: value for step in steps for name, value in step.data.items()}
    plans = "".join(f"<h3>{escape(name)}</h3><pre>{escape(text)}</pre>" for name, text in data["plans"].items())
    heads = ("version", "operation", "partitions", "rows added", "rows deleted")
    history = "".join(f"<th class=n>{name}</th>" for name in heads)
    for each in data["history"]:
        history += "</tr><tr>" + "".join(f"<td class=n>{escape(_shown(value))}</td>" for value in each)
    return [
        "<h2>Batches of the stream, in milliseconds</h2>",
        KEY,
        f"<figure>{charts.batches_chart(data['batches'])}</figure>",
        "<h2>The plans of the join</h2>",
        '<p class="soft">An <code>Exchange</code> beneath the join is a shuffle.</p>',
        plans,
        "<h2>Tenants</h2>",
        f"<figure>{charts.tenants_chart(data['tenants'])}<figcaption>Rows of 2025 by tenant</figcaption></figure>",
        "<h2>Snapshots</h2>",
        f"<table><tr>{history}</tr></table>",
    ]


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value or "–")
