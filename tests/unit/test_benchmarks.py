"""The report of the benchmarks: what is measured, what is written, and that one suite's failure stops no other."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.__main__ import SUITES, _summary, run_apart, run_one
from benchmarks.document import SIZES, Outcome, Run, figures, number, plot, write_document
from benchmarks.report import Record, Report, Timing, measure, timing, together
from benchmarks.tpc import turn

ROOT = Path(__file__).parents[2]
FAST = Record(
    name="a scan",
    peer="pyarrow",
    unit="ms",
    ours=timing([1.0, 2.0, 3.0]),
    theirs=timing([4.0, 4.0, 8.0]),
    headline=True,
)
SLOW = Record(name="a commit", peer="deltalake", unit="ms", ours=timing([10.0], cpu=0.5), theirs=timing([5.0], cpu=1.0))
MANY = Record(name="writers", peer="pyiceberg", unit="/s", ours=timing([30.0]), theirs=timing([10.0]), better="higher")


def outcome(*records: Record, failure: str | None = None) -> Outcome:
    return Outcome(suite="join", summary="What it is.", records=records, notes=("a note",), failure=failure)


def test_a_speed_above_one_is_faster_whichever_figure_is_better() -> None:
    assert (FAST.speed, SLOW.speed, MANY.speed) == (2.0, 0.5, 3.0)
    assert FAST.speeds == (4.0 / 3.0, 8.0)


def test_nothing_measured_has_no_speed() -> None:
    failed = Record(name="failures", peer="x", unit="", ours=timing([0.0]), theirs=timing([0.0]))
    assert failed.speed is None
    assert failed.speeds is None
    assert "failures" not in plot("join", [failed, FAST])


def test_the_spread_is_of_quartiles_once_there_are_enough_values() -> None:
    assert timing([1.0, 9.0]).spread == (1.0, 9.0)
    low, high = timing([1.0, 2.0, 3.0, 4.0, 100.0]).spread
    assert 1.0 < low < 3.0 < high < 100.0


def test_rounds_are_one_figure_with_the_spread_of_all() -> None:
    found = together([timing([1.0, 2.0], cpu=1.0), timing([6.0], cpu=3.0)])
    assert (found.values, found.cpu, found.spread) == ((1.0, 2.0, 6.0), 2.0, (1.0, 6.0))
    assert together([timing([1.0])]).cpu is None


def test_actions_are_measured_in_turn_after_a_run_to_warm_up() -> None:
    order: list[str] = []
    found = measure({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, runs=2)
    assert order == ["a", "b"] * 3
    assert [len(each.values) for each in found.values()] == [2, 2]


def test_cpu_time_of_a_child_that_still_runs_counts() -> None:
    loop = "x = 0\nfor n in range(3_000_000): x += n\nprint('done', flush=True)\ninput()"
    child = subprocess.Popen([sys.executable, "-c", loop], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        found = measure({"child": child.stdout.readline}, runs=1, warm=0)
    finally:
        child.communicate("\n")
    assert found["child"].cpu is not None
    assert found["child"].cpu > 0.02


def test_records_survive_the_way_between_processes() -> None:
    report = Report("join")
    report.add("a scan", Timing(values=(1.0, 2.0), cpu=0.1), 4.0, peer="pyarrow", unit="ms")
    (given,) = report.to_json()["records"]
    assert Record.from_json(given) == report.records[0]


def test_the_page_has_tables_plots_versions_and_failures(tmp_path: Path) -> None:
    page = tmp_path / "docs" / "benchmarks.md"
    page.parent.mkdir()
    broken = Outcome(suite="spark", summary="", records=(), failure="OSError: /home/someone/secret/place is full")
    write_document(page, Run(quick=True, outcomes=(outcome(FAST, SLOW, MANY), broken)))
    text = page.read_text()
    assert "| a scan | pyarrow | 2.00 | 2.00 (1.00–3.00) | 4.00 (4.00–8.00) | ms | – / – |" in text
    assert "| a commit | deltalake | 0.50 | 10.0 | 5.00 | ms | 0.500 / 1.00 |" in text
    assert "Made by `make bench QUICK=1`" in text
    assert "| [join](#join) | deltalake | 1 | 0.50 | 2.00 |" in text
    assert "pyarrow" in text
    assert "cores" in text
    assert "**This suite failed**" in text
    assert "/home" not in text
    assert "(benchmarks/join.svg)" in text
    assert "spark.svg" not in text
    svg = ElementTree.parse(page.parent / "benchmarks" / "join.svg").getroot()
    assert len([each for each in svg.iter() if each.tag.endswith("rect")]) == 3


def test_the_figures_of_the_readme_are_replaced(tmp_path: Path) -> None:
    page, readme = tmp_path / "docs" / "benchmarks.md", tmp_path / "README.md"
    page.parent.mkdir()
    readme.write_text("before\n<!-- figures: made by make bench -->\nold\n<!-- end of figures -->\nafter\n")
    write_document(page, Run(outcomes=(outcome(FAST, SLOW),)))
    text = readme.read_text()
    assert "| [join](docs/benchmarks.md#join) | a scan | 2.00 ms | 4.00 ms (pyarrow) | 2.00 |" in text
    assert "a commit" not in text
    assert "old" not in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")


def test_means_of_ratios_show_no_figures_of_their_own() -> None:
    mean = Record(name="mean", peer="x", unit="relative", ours=timing([2.0]), theirs=timing([1.0]), better="higher")
    assert "| mean | – | x | 2.00 |" in figures(Run(outcomes=(outcome(replace(mean, headline=True)),)))


def test_the_peers_of_a_figure_share_its_row() -> None:
    other = replace(FAST, peer="DuckDB", theirs=timing([1.0]))
    text = figures(Run(outcomes=(outcome(FAST, other),)))
    assert "| a scan | 2.00 ms | 4.00 ms (pyarrow), 1.00 ms (DuckDB) | 2.00, 0.50 |" in text


def test_the_readme_shows_few_figures_and_those_of_the_page() -> None:
    """Both are written by one run; the README shows slower ones too."""
    readme, page = ((ROOT / name).read_text() for name in ("README.md", "docs/benchmarks.md"))
    block = readme.split("<!-- figures: made by make bench -->")[1].split("<!-- end of figures -->")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines() if line[:3] == "| ["]
    on_page = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line[:2] == "| "]
    measured = {(cells[0], cells[1], cells[2]) for cells in on_page if len(cells) == 7}

    assert 10 <= len(rows) <= 18
    speeds = []
    for _, name, _, peers, beside in rows:
        parts = re.split(r", (?=[\d,.]+ [\w/]+ \()", peers) if "(" in peers else peers.split(", ")
        for peer, speed in zip(parts, beside.split(", "), strict=True):
            own = re.sub(r"^[\d,.]+ [\w/]+ \((.*)\)$", r"\1", peer)
            assert (name, own, speed) in measured
            speeds.append(float(speed))
    assert min(speeds) < 1 < max(speeds)


def test_a_run_is_written_again_from_what_it_measured(tmp_path: Path) -> None:
    run = Run(quick=True, outcomes=(outcome(FAST, SLOW, failure="no more"),), day="2026-01-31", machine="one core")
    assert Run.from_json(json.loads(json.dumps(run.to_json()))) == run


def test_every_variable_that_sets_a_size_is_on_the_page() -> None:
    text = "".join(path.read_text() for path in (ROOT / "benchmarks").glob("*.py") if path.stem != "document")
    used = set(re.findall(r'"(LANCEPART_[A-Z_]+)"', text)) - {"LANCEPART_BENCH_QUICK", "LANCEPART_BENCH_LARGE"}
    assert set(re.findall(r"`(LANCEPART_[A-Z_]+)`", SIZES)) == used


def test_the_readme_has_room_for_the_figures() -> None:
    text = (ROOT / "README.md").read_text()
    assert text.count("<!-- figures: made by make bench -->") == text.count("<!-- end of figures -->") == 1
    assert figures(Run(outcomes=(outcome(FAST),))).count("|") > 8


def test_numbers_have_three_digits() -> None:
    assert [number(each) for each in (1234.5, 12.345, 0.01234, 0)] == ["1,234", "12.3", "0.0123", "0"]


def test_a_suite_that_fails_keeps_its_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(report: Report) -> None:
        report.add("a scan", 1.0, 2.0, peer="x", unit="ms")
        raise ValueError("no more")

    monkeypatch.setattr("benchmarks.join.run", broken)
    with pytest.raises(ValueError, match="no more"):
        run_one("join", tmp_path / "records.json")
    assert "a scan" in (tmp_path / "records.json").read_text()


@pytest.mark.slow
def test_a_suite_runs_in_a_process_of_its_own() -> None:
    done = run_apart("hashing", quick=True)
    if done.failure is None:
        assert {record.peer for record in done.records} == {"pyiceberg-core"}
    else:
        assert "pyiceberg_core" in done.failure


def test_every_suite_is_there_and_says_what_it_measures() -> None:
    others = {
        "__init__",
        "__main__",
        "document",
        "installed",
        "report",
        "search_rules",
        "tpc_data",
        "tpc_session",
        "tpc_tables",
    }
    assert {path.stem for path in (ROOT / "benchmarks").glob("*.py")} - others == set(SUITES)
    assert all(len(_summary(name)) > 20 for name in SUITES)


def test_each_side_of_tpc_is_first_as_often_as_the_others() -> None:
    sides = ("ours", "one", "other")
    rounds = [turn(sides, query + number) for query in range(3) for number in range(3)]
    assert Counter(each[0] for each in rounds) == dict.fromkeys(sides, 3)
    assert {turn(sides, query)[0] for query in range(3)} == set(sides)
    assert all(sorted(each) == sorted(sides) for each in rounds)
