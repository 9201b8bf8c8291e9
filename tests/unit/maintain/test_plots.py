"""Charts of a table, and what notebooks show."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError, UnsupportedOperationError

matplotlib = pytest.importorskip("matplotlib")
NOTEBOOK = Path(__file__).parents[3] / "examples" / "tour.ipynb"


@pytest.fixture(autouse=True)
def _no_screen() -> Iterator[None]:
    matplotlib.use("Agg")
    yield
    from matplotlib import pyplot

    pyplot.close("all")


@pytest.fixture
def table(tmp_path: Path) -> lp.PartitionedTable:
    made = lp.create_table(tmp_path / "<t>", pa.schema([("id", pa.int64()), ("country", pa.string())]), ["country"])
    made.append(pa.table({"id": range(12), "country": ["<US>"] * 9 + ["FR", "FR", None]}))
    made.delete("id = 0")
    return made


def test_partitions_are_bars_the_largest_on_top(table: lp.PartitionedTable) -> None:
    axes = table.plot.partitions("rows", most=2)
    assert [bar.get_width() for bar in axes.patches] == [2, 8]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["v1 country=FR", "v1 country=<US>"]
    assert "largest 2 of 3" in axes.get_title(loc="left")


def test_skew_shows_the_median(table: lp.PartitionedTable) -> None:
    axes = table.plot.skew("rows")
    assert axes.get_lines()[0].get_ydata()[0] == 2
    assert "4.0 times" in axes.get_legend().get_texts()[0].get_text()
    assert table.plot.skew("rows", ax=axes) is axes


def test_history_has_what_was_added_and_deleted(table: lp.PartitionedTable) -> None:
    heights = [bar.get_height() for bar in table.plot.history(most=2).patches]
    assert heights == [12, 0, 0, -1]


def test_a_measure_that_is_none_is_refused(table: lp.PartitionedTable) -> None:
    with pytest.raises(InvalidInputError, match="bytes, rows, fragments"):
        table.plot.skew("weight")  # type: ignore[arg-type]


def test_without_matplotlib_the_error_says_what_to_install(
    table: lp.PartitionedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UnsupportedOperationError, match="pip install matplotlib"):
        table.plot.partitions()


def test_notebooks_show_what_things_are(table: lp.PartitionedTable, tmp_path: Path) -> None:
    db = lp.connect(tmp_path / "w")
    db.create_namespace("<db>")
    db.create_table("<db>.events", table.schema, ["country"])
    table.tags.create("tag-1", table.version)
    shown = {
        "connection": (db, "&lt;db&gt;.events"),
        "description": (table.describe(), "country"),
        "plan": (table.scan("country = 'FR'").plan(), "country"),
        "commit": (table.append(pa.table({"id": [99], "country": ["FR"]})), "rows added"),
        "maintenance": (table.maintenance.compact(progress=False), "compact"),
        "tags": (table.tags, "tag-1"),
        "spec": (table.spec, "country"),
        "changes": (table.changes("tag-1"), "1 rows"),
        "table": (table, "&lt;t&gt;"),
        "scan": (table.scan("country = '<US>'"), "&lt;US&gt;"),
        "config": (lp.config, "cache_bytes"),
        "inspect": (table.inspect, "unpublished_commits()"),
        "upkeep": (table.maintenance, "remove_orphans()"),
        "merge": (table.merge([], on=["id"]).when_matched_delete("source.id > 1"), "source.id &gt; 1"),
        "field": (table.spec.fields[0], "identity"),
        "catalog": (table.namespace, "&lt;t&gt;"),
        "transaction": (table.transaction(), "isolation"),
    }
    for name, (thing, word) in shown.items():
        text = thing._repr_html_()  # type: ignore[attr-defined]
        assert word in text, name
        for raw in ("<US>", "<t>", "<db>"):
            assert raw not in text, name


def test_objects_say_what_they_are(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "t", pa.schema([("id", pa.int64()), ("k", pa.string())]), ["k"])
    assert repr(table.inspect).startswith(f"Inspect('{tmp_path}/t'): broken(), ")
    assert repr(table.maintenance).startswith(f"Maintenance('{tmp_path}/t'): compact(), ")
    merge = table.merge([{"id": 1}], on=["id"])
    assert repr(merge) == "Merge(on=['id']: no clause yet)"
    both = merge.when_matched_update({"k": "'x'"}).when_not_matched_insert_all()
    assert repr(both) == "Merge(on=['id']: when matched update k = 'x'; when not matched insert all columns)"
    with table.transaction() as tx:
        tx.append([{"id": 1, "k": "a"}])
        assert f"state='open', snapshot={table.version}, isolation='snapshot', partitions=1" in repr(tx)


def test_a_field_whose_column_was_dropped_is_described(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("k", pa.string()), ("day", pa.date32())])
    table = lp.create_table(tmp_path / "t", schema, ["k", "year(day)", "id"])
    table.drop_column("k")
    table.drop_column("day")

    dropped = "(of a column that was dropped)"
    assert table.describe().partition_by == (f"k {dropped}", f"day_year {dropped}", "id")


def test_the_example_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    results = [_run("".join(cell["source"]), names) for cell in _cells() if cell["cell_type"] == "code"]
    assert len(results) >= 8
    assert sum(hasattr(each, "_repr_html_") for each in results) >= 3
    assert sum(type(each).__name__ == "Axes" for each in results) == 3
    assert names["events"].count_rows() > 0


def _cells() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(NOTEBOOK.read_text())["cells"]
    assert not [cell for cell in found if cell.get("outputs")], "save the notebook without outputs"
    return found


def _run(source: str, names: dict[str, Any]) -> object:
    """Run a cell as a notebook does: the value of its last expression is shown."""
    parsed = ast.parse(source)
    last = parsed.body.pop() if isinstance(parsed.body[-1], ast.Expr) else None
    exec(compile(parsed, "cell", "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)


def test_names_are_shown_as_they_are_whatever_they_hold(tmp_path: Path) -> None:
    values = ["$\\frac{$", "a$b_{$", None, "NULL", "long " * 100]
    data = pa.table({"id": range(5), "price": values})
    axes = lp.create_table_from(tmp_path / "t", data, partition_by=["price"]).plot.partitions("rows")
    axes.figure.canvas.draw()
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert len(axes.patches) == len(names) == 5
    assert "v1 price=$\\frac{$" in names
    assert names.count("v1 price=NULL") == 2
    assert max(map(len, names)) == 60
