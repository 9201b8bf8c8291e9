"""What the demo shows in a terminal."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from examples.demo.steps import Step


def quiet_lance() -> None:
    """Keep Lance's remarks about small indices off the screen; it reads this when it is first imported."""
    os.environ.setdefault("LANCE_LOG", "error")


class Screen:
    """A spinner with the time while a step runs, and its result when it is done."""

    def __init__(self) -> None:
        self.console = Console(highlight=False)
        self.number = 0

    def __enter__(self) -> Screen:
        self.console.print("\n[bold]lancepart on Spark, each step beside the same on Hive-partitioned Parquet[/]")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.console.print("[red]The demo failed in this step.[/]")

    @contextmanager
    def running(self, title: str) -> Iterator[None]:
        """Show that a step is under way."""
        self.number += 1
        columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=30), TimeElapsedColumn()
        with Progress(*columns, console=self.console, transient=True) as progress:
            progress.add_task(escape(title), total=None)
            yield

    def show(self, step: Step) -> None:
        """The result of a step: both times, and what it found."""
        self.console.print(f"\n[bold cyan]{self.number:>2}  {escape(step.title)}[/]  {times(step)}", soft_wrap=True)
        for line in step.lines:
            self.console.print(f"    {escape(line)}", soft_wrap=True)
        for text in step.data.get("plans", {}).values():
            self.console.print(f"[dim]{escape(indented(text))}[/]", soft_wrap=True)

    def end(self, steps: Sequence[Step], spent: float, report: Path) -> None:
        """All times once more, and where the report is."""
        table = Table(title="Seconds", title_justify="left")
        for name, justify in (("step", "left"), ("lancepart", "right"), ("Parquet", "right"), ("", "left")):
            table.add_column(name, justify=justify)  # type: ignore[arg-type]
        for step in steps:
            other = "–" if step.parquet is None else f"{step.parquet:.2f}"
            table.add_row(escape(step.title), f"{step.ours:.2f}", other, verdict(step))
        self.console.print()
        self.console.print(table)
        self.console.print(f"\nDone in {spent:.0f} s. The report with plots: [bold]{escape(str(report))}[/]")


def times(step: Step) -> str:
    """Both times of a step in words."""
    if step.parquet is None:
        return f"{step.ours:.2f} s [dim]({step.without})[/]"
    return f"{step.ours:.2f} s [dim]· Parquet {step.parquet:.2f} s · {verdict(step)}[/]"


def verdict(step: Step) -> str:
    """How both times compare."""
    if step.parquet is None:
        return step.without
    ratio = step.parquet / step.ours
    if 0.95 < ratio < 1.05:
        return "about as fast"
    return f"{ratio:.1f} times as fast" if ratio >= 1 else f"{1 / ratio:.1f} times as slow"


def indented(text: str) -> str:
    return "\n".join(f"      {line}" for line in text.splitlines())
