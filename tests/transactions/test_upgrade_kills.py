"""An upgrade killed at any step and run again gives the same table, once; and until then the old one is there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.storage import leaf_data
from lancepart.storage.files import Files
from lancepart.storage.manifest import Manifest
from tests.conformance.draft import appendix
from tests.conformance.hive import trees
from tests.support import dying
from tests.support.dying import Kill
from tests.support.processes import kills

pytestmark = pytest.mark.torture

SAMPLE = 5
STEPS: tuple[dying.Step, ...] = (
    (leaf_data, "stage"),
    (leaf_data, "create_leaf"),
    (Manifest, "publish"),
    (Manifest, "swap_properties"),
    (Manifest, "claim_properties"),
    (Manifest, "set_properties"),
    (Manifest, "add_columns"),
    (Files, "put"),
    (Files, "delete"),
)
INSIDE = ("sales", "events")


def write_hive(root: str) -> None:
    schema = pa.schema([("id", pa.int64()), ("country", pa.string())])
    table = lp.create_table(root, schema, ["country", "bucket(2, id)"], layout="hive")
    table.append(pa.table({"id": list(range(9)), "country": ["US", "FR", None] * 3}, schema=schema))


def write_inside(root: str) -> None:
    trees.write_events(root, namespace=INSIDE)


def write_draft(root: str) -> None:
    appendix.write_leaves(root)
    appendix.write_manifest(root, appendix.appendix_c(v2={}))


WRITERS: dict[str, tuple[Callable[[str], None], tuple[str, ...]]] = {
    "hive": (write_hive, ()),
    "inside": (write_inside, INSIDE),
    "draft": (write_draft, ()),
}


def run(root: str, namespace: tuple[str, ...], kill: Kill | None) -> int:
    """Upgrade in a child, to the end or to where it kills itself; how many steps it took."""
    return dying.run(_upgrade, (root, namespace), _steps, kill)


def _upgrade(root: str, namespace: tuple[str, ...]) -> None:
    lp.upgrade(root, namespace=namespace)


def _steps() -> tuple[dying.Step, ...]:
    return STEPS


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITERS)
def test_an_upgrade_killed_anywhere_is_gone_on_with(name: str, tmp_path: Path) -> None:
    write, namespace = WRITERS[name]
    write(str(tmp_path / "template"))
    shutil.copytree(tmp_path / "template", tmp_path / "counted")
    steps = run(str(tmp_path / "counted"), namespace, None)
    expected = content(lp.open_table(tmp_path / "template", namespace=namespace))

    for kill in kills(steps, name, SAMPLE):
        root = str(tmp_path / f"killed_{kill.step}_{kill.after}")
        shutil.copytree(tmp_path / "template", root)
        run(root, namespace, kill)

        assert content(lp.open_table(root, namespace=namespace)) == expected
        table = lp.upgrade(root, namespace=namespace)

        assert_upgraded(table, expected)
        assert_upgraded(lp.open_table(root, namespace=namespace), expected)
        shutil.rmtree(root)


def content(table: Any) -> list[Any]:
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])


def assert_upgraded(table: Any, expected: list[Any]) -> None:
    assert table.metadata.layout == "manifest"
    assert content(table) == expected
    assert table.scan().count() == len(expected)
    values = [tuple(map(tuple, row["partition"])) for row in table.inspect.partitions().to_pylist()]
    assert len(values) == len(set(values))
    assert not os.path.exists(f"{table.root}/__upgrade")
