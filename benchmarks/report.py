"""Figures beside a peer's, as a table."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Report:
    """Collects figures and prints them as they come."""

    title: str
    lines: list[str] = field(default_factory=list)

    def add(self, name: str, ours: float, peer: float, *, better: str = "lower") -> None:
        if better == "higher":
            ratio = ours / peer if peer else float("inf")
            verdict = f"{ratio:.2f}x as many"
        else:
            ratio = ours / peer if peer else (1.0 if not ours else float("inf"))
            verdict = f"{ratio:.2f}x the peer's"
        self.note(f"{name:<58} {ours:>10.2f} {peer:>10.2f}   {verdict}")

    def note(self, line: str) -> None:
        self.lines.append(line)
        print(line, flush=True)
