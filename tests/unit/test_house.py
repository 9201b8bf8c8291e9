"""What keeps the rooms apart, checked on the source itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

import lancepart
from lancepart.commit.frame_writer import NoFrameWriter, frame_writer
from lancepart.commit.leaf_changes import LeafChanges
from lancepart.errors import UnsupportedOperationError
from lancepart.model.transforms import TRANSFORMS
from lancepart.read.engine import NoEngine, cluster
from lancepart.spark.engine import SparkEngine

SOURCE = Path(lancepart.__file__).parent
ROOT = Path(__file__).parents[2]
QUAINT = ("told", "asked", "anew", "places", "whoever")
"""Words that the documentation of PyIceberg and Spark does without; each has a plainer one."""
LAYOUT_NAMES = {"HIVE", "DRAFT", "MANIFEST"}
TREES = {"TreeManifest", "TreeSnapshot", "TreeWriting", "ManifestLayout", "DraftLayout", "HiveLayout"}
TESTS = {"tree_of", "is_draft", "is_hive"}
CONVERTERS = ("layout/", "maintain/upgrade", "commit/hive")
"""The layouts themselves, the upgrades from one to the other, and what writes the leaves of a tree."""


def modules(*, besides: str | tuple[str, ...]) -> Iterator[tuple[str, ast.Module]]:
    return ((name, tree) for name, tree in parsed() if not name.startswith(besides))


@cache
def parsed() -> tuple[tuple[str, ast.Module], ...]:
    return tuple(
        (path.relative_to(SOURCE).as_posix(), ast.parse(path.read_text())) for path in sorted(SOURCE.rglob("*.py"))
    )


def names_in(node: ast.AST) -> set[str]:
    found = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return found | {each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and type(each.value) is str}


def branches_on_a_layout(tree: ast.Module) -> Iterator[int]:
    """Comparisons of a layout with a name, whether by constant or by text, and tests for one by class or call."""
    spelled = LAYOUT_NAMES | {"hive", "draft", "manifest"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            asked = any(isinstance(side, ast.Attribute) and side.attr == "layout" for side in sides)
            if LAYOUT_NAMES & names_in(node) or (asked and any(names_in(side) & spelled for side in sides)):
                yield node.lineno
        if isinstance(node, ast.Call) and {"isinstance"} & names_in(node.func) and TREES & names_in(node):
            yield node.lineno
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in TESTS:
            yield node.lineno
        if isinstance(node, ast.MatchClass) and TREES & names_in(node.cls):
            yield node.lineno


def test_only_the_layouts_branch_on_a_layout() -> None:
    found = [f"{name}:{line}" for name, tree in modules(besides=CONVERTERS) for line in branches_on_a_layout(tree)]

    assert found == []


def test_such_a_branch_is_found() -> None:
    for text in (
        "if metadata.layout == HIVE: pass",
        "x = metadata.layout != 'draft'",
        "if isinstance(manifest, TreeManifest): pass",
        "x = layout in (MANIFEST, HIVE)",
        "if tree_of(manifest) is None: pass",
        "x = hive.is_hive(properties)",
        "x = is_draft(properties)",
        "if isinstance(planned, TreeWriting): pass",
    ):
        assert list(branches_on_a_layout(ast.parse(text))) == [1], text


def test_no_room_tests_for_the_class_of_a_transform() -> None:
    """Only the Hive-style layout and its upgrade do, whose functions are a closed list on disk."""
    classes = {each.__name__ for each in TRANSFORMS.values()} | {"TimePart"}
    found = [
        f"{name}:{node.lineno}"
        for name, tree in modules(besides=("model/transforms/", "layout/hive", "maintain/upgrade_hive"))
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and "isinstance" in names_in(node.func) and classes & names_in(node)
    ]

    assert found == []


def test_a_tree_is_no_manifest_and_nobody_asks_for_an_exact_class() -> None:
    exact = []
    for name, tree in modules(besides="-"):
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and node.name == "TreeManifest":
                assert node.bases == []
            if isinstance(node, ast.Compare) and {"Snapshot", "Manifest"} & set(map(ast.unparse, node.comparators)):
                exact.append(f"{name}:{node.lineno}")

    assert exact == []


def test_no_room_finds_another_by_name() -> None:
    """Only the packages' own ``__init__`` import on demand: an engine is handed in by ``lancepart.spark.engine``."""
    found = [
        f"{name}:{node.lineno}"
        for name, tree in modules(besides="-")
        for node in ast.walk(tree)
        if not name.endswith("__init__.py") and isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func)
    ]

    assert found == []


def test_the_front_door_hides_no_step_in_a_lambda() -> None:
    doors = {name: tree for name, tree in modules(besides="-") if name.startswith("table/")}

    assert len(doors) > 1
    assert not [
        f"{name}:{node.lineno}"
        for name, door in doors.items()
        for node in ast.walk(door)
        if isinstance(node, ast.Lambda)
    ]


def test_an_engine_that_is_not_handed_in_is_refused() -> None:
    for act in (lambda: NoEngine().executor(None), lambda: NoFrameWriter().stage(None, None, None, "auto")):  # type: ignore[arg-type]
        with pytest.raises(UnsupportedOperationError, match="import lancepart"):
            act()
    assert isinstance(cluster(), SparkEngine)
    assert isinstance(frame_writer(), SparkEngine)


def test_the_changes_of_a_leaf_change_by_their_own_methods() -> None:
    own = {each.name for each in fields(LeafChanges)}
    found = []
    for name, tree in modules(besides="-"):
        if not name.startswith(("commit/", "maintain/")):
            continue
        for node in ast.walk(tree):
            if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Store) or node.attr not in own:
                continue
            if ast.unparse(node.value) != "self":
                found.append(f"{name}:{node.lineno}")

    assert found == []


def test_the_columns_of_the_manifest_are_spelled_in_format_only() -> None:
    """By name they are constants of ``format.names``; rows are built in ``format``.

    Requests and replies of the namespace API, and Lance's own descriptions, have a ``metadata`` too.
    """
    rooms = ("storage/", "catalog/", "layout/", "plan/", "read/", "write/", "commit/", "maintain/", "queries/")
    compared = re.compile(r"\b(object_id|object_type|base_objects|read_version) *(=|<|>|IN\b|IS\b|LIKE\b)")
    found = []
    for name, tree in modules(besides=("format/", "maintain/inspect", "maintain/upgrade_copy")):
        columns = {"object_type", "base_objects", "read_version"}
        columns |= {"object_id"} if name.startswith(("storage/", "catalog/", "commit/", "queries/")) else set()
        columns |= {"metadata"} if name not in ("catalog/tables.py", "catalog/versions.py") else set()
        shown = set(docstrings(tree))
        for node in ast.walk(tree) if name.startswith(rooms) else ():
            text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            built = isinstance(node, ast.Call) and ast.unparse(node.func) == "Row"
            if built or text in columns or (id(node) not in shown and compared.search(text)):
                found.append(f"{name}:{node.lineno}")

    assert found == []


def test_the_keys_on_disk_are_spelled_in_format_only() -> None:
    """Options of Spark's data source and calls in messages have the same prefix; schemas are spelled in the model."""
    found = [
        f"{name}:{node.lineno}"
        for name, tree in modules(besides=("format/", "spark/", "ui/server.py", "cli/wording.py", "model/schema.py"))
        for node in ast.walk(tree)
        if not name.endswith("__init__.py")
        and isinstance(node, ast.Constant)
        and re.match(r"lancepart\\?[.:]\w", str(node.value))
    ]

    assert found == []


def docstrings(tree: ast.Module) -> Iterator[int]:
    """The identities of the nodes that are docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield id(node.value)


def test_the_source_and_the_pages_use_the_words_of_the_field() -> None:
    quaint = re.compile(rf"\b({'|'.join(QUAINT)})\b", re.IGNORECASE)
    pages = [
        *(ROOT / "docs").rglob("*.md"),
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "CHANGELOG.md",
        *(ROOT / "src").rglob("*.py"),
        *(ROOT / "jvm").rglob("*.java"),
        *(ROOT / "jvm").rglob("*.py"),
    ]

    found = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]}"
        for path in sorted(pages)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if (match := quaint.search(re.sub(r"test_\w+", "", line)))
    ]

    assert found == []
