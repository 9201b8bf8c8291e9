"""The rules of conflicts, one by one, and cell by cell against the tables in ``docs/transactions.md``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lancepart.commit import conflicts
from lancepart.commit.conflicts import LeafEffect
from lancepart.layout.leaves import Leaf
from lancepart.model.spec import PartitionField, PartitionSpec
from lancepart.model.transforms import Identity
from lancepart.storage.leaf_data import Difference

PAGE = Path(__file__).parents[3] / "docs" / "transactions.md"
SAME, OTHER = "On the same rows of the same leaf", "On other rows of the same leaf"
FRAGMENT = 0


def difference(*, added: int = 0, removed: tuple[int, ...] = (), deleted: tuple[int, ...] = ()) -> Difference:
    rows = {FRAGMENT: np.array(deleted, dtype=np.int64)} if deleted else {}
    return Difference(added=tuple(range(added)), removed=frozenset(removed), deleted=rows, restored={})


@dataclass(frozen=True)
class Verb:
    """What a verb does to a leaf that has one fragment, and what it takes a conflict for.

    ``again``: it is done again from the start, so that it comes after whatever came first; ``yields``: it leaves the
    leaf out then.
    """

    change: Callable[[int], Difference]
    effect: LeafEffect = dataclass_field(default_factory=LeafEffect)
    again: bool = False
    yields: bool = False


def deletes(row: int) -> Difference:
    return difference(deleted=(row,))


def replaces(row: int) -> Difference:
    return difference(added=1, deleted=(row,))


def nothing(row: int) -> Difference:
    return difference()


def rewrites(row: int) -> Difference:
    return difference(added=1, removed=(FRAGMENT,))


def empties(row: int) -> Difference:
    return difference(removed=(FRAGMENT,))


ADDS, BOTH = LeafEffect(adds=True), LeafEffect(adds=True, deletes=True)
VERBS = {
    "append": Verb(lambda row: difference(added=1), ADDS),
    "overwrite": Verb(rewrites, LeafEffect(adds=True, deletes=True, replaces=True, empties=True)),
    "overwrite where": Verb(replaces, BOTH, again=True),
    "delete": Verb(deletes, LeafEffect(deletes=True)),
    "update": Verb(replaces, BOTH),
    "upsert": Verb(replaces, BOTH, again=True),
    "upsert in place": Verb(replaces, BOTH, again=True),
    "compact": Verb(rewrites, LeafEffect(replaces=True), yields=True),
    "rewrite": Verb(empties, LeafEffect(deletes=True), yields=True),
    "expire": Verb(nothing),
    "add_column": Verb(nothing),
    "rename_column": Verb(nothing),
    "update_spec": Verb(nothing),
}


def ends_in(second: Verb, first: Verb, *, same_rows: bool) -> str:
    """What the rules make of two commits that began at the same snapshot."""
    theirs, ours = first.change(1), second.change(1 if same_rows else 2)
    if not (theirs.added or theirs.removed or theirs.deleted) or not (ours.added or ours.removed or ours.deleted):
        return "both"
    reason = conflicts.with_new_version(second.effect) or conflicts.with_rows(ours, theirs)
    if reason is None or second.again:
        return "both"
    return "yields" if second.yields else "conflict"


def table_of(heading: str) -> dict[tuple[str, str], str]:
    """The cells of a table of the page by second and first commit."""
    lines = PAGE.read_text().partition(heading)[2].splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("| second"))
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    firsts = rows[0][1:]
    return {(row[0], first): cell for row in rows[2:] for first, cell in zip(firsts, row[1:], strict=True)}


# A rewrite moves rows to partitions of the newest spec, and an overwrite replaces partitions of that: on the page the
# two do not meet in one leaf.
ELSEWHERE = {("overwrite", "rewrite")}


@pytest.mark.parametrize(("heading", "same_rows"), [(SAME, True), (OTHER, False)])
def test_the_rules_give_the_table_of_the_page(heading: str, same_rows: bool) -> None:
    cells = table_of(heading)
    found = {pair: ends_in(VERBS[pair[0]], VERBS[pair[1]], same_rows=same_rows) for pair in cells}

    assert len(cells) >= 49
    assert {pair: cell for pair, cell in found.items() if pair not in ELSEWHERE} == {
        pair: cell for pair, cell in cells.items() if pair not in ELSEWHERE
    }


def test_rows_that_were_only_added_outlive_the_removal_of_their_empty_leaf() -> None:
    assert conflicts.with_removal(ADDS) is None
    for effect in (
        BOTH,
        LeafEffect(adds=True, replaces=True, empties=True),
        LeafEffect(adds=True, relocates=True),
        LeafEffect(adds=True, can_recreate=False),
        LeafEffect(deletes=True),
    ):
        assert conflicts.with_removal(effect) == "was dropped by another writer"


def test_who_creates_a_partition_second_adds_to_it_unless_its_rows_were_to_be_all() -> None:
    assert conflicts.with_creation(ADDS) is None
    assert "made by another writer" in str(conflicts.with_creation(LeafEffect(adds=True, replaces=True)))


def test_a_leaf_that_is_made_anew_elsewhere_takes_no_other_version() -> None:
    assert conflicts.with_new_version(BOTH) is None
    assert "being rewritten" in str(conflicts.with_new_version(LeafEffect(relocates=True)))
    assert "being replaced" in str(conflicts.with_new_version(LeafEffect(replaces=True)))


def test_rows_of_a_fragment_that_the_other_removed_are_the_same_rows() -> None:
    one = difference(deleted=(3,))
    assert "rewritten or deleted" in str(conflicts.with_rows(one, difference(removed=(FRAGMENT,))))
    assert "deleted by another writer" in str(conflicts.with_rows(difference(removed=(FRAGMENT,)), one))
    assert conflicts.with_rows(one, difference(removed=(7,))) is None
    assert conflicts.with_rows(one, difference(deleted=(4,))) is None
    assert "deleted by another writer" in str(conflicts.with_rows(one, difference(deleted=(2, 3))))


def test_keys_that_another_writer_added_are_a_conflict() -> None:
    assert conflicts.with_keys([np.array([False, False]), np.array([], dtype=bool)]) is None
    assert "upserts too" in str(conflicts.with_keys([np.array([False]), np.array([True, False])]))


@pytest.mark.parametrize(
    ("rewritten", "before", "after", "fits"),
    [
        (1, difference(deleted=(1,)), difference(added=2), True),
        (2, difference(), difference(), False),
        (1, difference(added=1), difference(), False),
        (1, difference(), difference(removed=(FRAGMENT,)), False),
        (1, difference(), difference(deleted=(1,)), False),
    ],
)
def test_a_leaf_that_was_written_anew_is_rebased_if_rows_were_only_added_after(
    rewritten: int, before: Difference, after: Difference, fits: bool
) -> None:
    assert (conflicts.with_own_rewrite(rewritten, before, after) is None) is fits


def test_staged_rows_have_the_columns_of_the_leaf() -> None:
    assert conflicts.with_columns(alike=True, current=True) is None
    assert conflicts.with_columns(alike=False, current=True) is not None
    assert conflicts.with_columns(alike=True, current=False) is not None


def test_what_a_transaction_depends_on_is_compared() -> None:
    field = PartitionField(field_id="c", source_ids=(0,), transform=Identity(), result_type=pa.string())
    spec = PartitionSpec(id=1, fields=(field,))
    assert conflicts.with_upgrade("draft", "draft") is None
    assert "upgraded" in str(conflicts.with_upgrade("draft", "manifest"))
    assert conflicts.with_fence(None, None) is None
    assert conflicts.with_fence("a", "b") is not None
    assert conflicts.with_specs((spec,), (spec,)) is None
    assert "partitioning" in str(conflicts.with_specs((spec,), (spec, PartitionSpec(id=2, fields=spec.fields))))


def test_leaves_that_changed_came_or_went_are_found() -> None:
    def leaf(name: str, version: int, location: str = "a") -> Leaf:
        return Leaf(object_id=name, spec_id=1, location=location, key=(), values=(), read_version=version)

    then = [leaf("same", 1), leaf("newer", 1), leaf("gone", 1), leaf("moved", 1)]
    now = [leaf("same", 1), leaf("newer", 2), leaf("fresh", 1), leaf("moved", 1, "b")]

    assert set(conflicts.changed_leaves(then, now)) == {"newer", "gone", "fresh", "moved"}
