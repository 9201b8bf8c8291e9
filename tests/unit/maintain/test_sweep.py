"""Every kind of file that Lance puts beneath a table: made, aged, collected, and what is kept still reads."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from lancepart.maintain import sweep
from lancepart.maintain.sweep import Found, Looking, Member, Removed, Removing
from lancepart.storage.leaf_files import Kind, parse
from lancepart.storage.root import Root

LEAF = "leaf"
BIG = 5_000_000


def soon() -> datetime:
    return datetime.now(UTC) + timedelta(minutes=1)


def detached(uri: str, operation: Any, base: int) -> int:
    return int(lance.LanceDataset.commit(uri, operation, read_version=base, detached=True).version)


def swept(root: Path, *versions: int, cutoff: datetime | None = None) -> tuple[Found, Removed]:
    """Look through a table of which some versions are kept, and remove what is found."""
    at = Root.parse(str(root))
    member = Member(location=LEAF, versions=frozenset(versions))
    found = sweep.look(Looking(root=at, top=LEAF, members=(member,), cutoff=cutoff or soon()))
    return found, sweep.remove(Removing(root=at, top=LEAF, garbage=found.garbage))


def files(root: Path) -> set[str]:
    return {
        os.path.relpath(os.path.join(folder, name), root / LEAF)
        for folder, _, names in os.walk(root / LEAF)
        for name in names
    }


def numbers(count: int = 100, first: int = 0) -> pa.Table:
    return pa.table({"id": pa.array(range(first, first + count), pa.int64())})


def blobs(kind: str) -> pa.Table:
    values = [os.urandom(BIG), os.urandom(200_000), b"small", None]
    if kind == "marked":
        field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
        return pa.table([range(4), pa.array(values, pa.large_binary())], schema=pa.schema([("id", pa.int64()), field]))
    return pa.table({"id": pa.array(range(4), pa.int64()), "b": lance.blob_array(values)})


def read(uri: str, version: int | str | None = None) -> Any:
    return lance.dataset(uri, version=version).scanner(blob_handling="all_binary").to_table()


@pytest.mark.parametrize("kind", ["marked", "extension"])
def test_blobs_beside_their_data_file_stay_with_it_and_go_with_it(tmp_path: Path, kind: str) -> None:
    uri = str(tmp_path / LEAF)
    lance.write_dataset(blobs(kind), uri, data_storage_version="2.2")
    fragments = lance.fragment.write_fragments(blobs(kind), lance.dataset(uri))
    kept = detached(uri, lance.LanceOperation.Append(fragments), 1)
    before = read(uri, kept)
    lance.fragment.write_fragments(blobs(kind), lance.dataset(uri))
    assert len([path for path in files(tmp_path) if path.endswith(".blob")]) == 6

    swept(tmp_path, kept)

    assert read(uri, kept) == before
    left = files(tmp_path)
    assert len([path for path in left if path.endswith(".blob")]) == 4
    assert len([path for path in left if path.startswith("data/") and path.endswith(".lance")]) == 2


def test_a_table_with_managed_blobs_is_left_as_it_is(tmp_path: Path) -> None:
    """A compaction leaves the values of such blobs where they are, beside data files that nothing needs any more."""
    uri = str(tmp_path / LEAF)
    for mode in ("create", "append"):
        lance.write_dataset(blobs("extension"), uri, mode=mode, data_storage_version="2.2")
    lance.dataset(uri).update_schema_metadata({"lance.blob.managed": "true"})
    lance.dataset(uri).optimize.compact_files()
    latest = int(lance.dataset(uri).version)
    rows, before = read(uri), files(tmp_path)
    (fragment,) = lance.dataset(uri).get_fragments()
    key = Path(fragment.metadata.files[0].path).stem
    assert not [path for path in before if path.startswith(f"data/{key}/")]

    found, removed = swept(tmp_path, latest, cutoff=soon() + 2 * sweep.BLOBS_FIRST)

    assert "managed blobs" in str(found.broken)
    assert (found.garbage, removed.files) == ((), 0)
    assert files(tmp_path) == before
    assert read(uri) == rows


def test_blobs_whose_data_file_is_in_the_making_are_kept_for_longer(tmp_path: Path) -> None:
    uri = str(tmp_path / LEAF)
    lance.write_dataset(blobs("marked"), uri, data_storage_version="2.2")
    lance.fragment.write_fragments(blobs("marked"), lance.dataset(uri))
    kept = {Path(file.path).stem for item in lance.dataset(uri).get_fragments() for file in item.metadata.files}
    (unfinished,) = [path for path in (tmp_path / LEAF / "data").glob("*.lance") if path.stem not in kept]
    unfinished.unlink()

    assert swept(tmp_path, 1)[1].files == 0
    assert swept(tmp_path, 1, cutoff=soon() + sweep.BLOBS_FIRST)[1].files == 2


INDICES: list[tuple[str, str, dict[str, Any]]] = [
    *(("id", kind, {}) for kind in ("BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER")),
    *(("text", kind, {}) for kind in ("INVERTED", "NGRAM")),
    ("many", "LABEL_LIST", {}),
    *(("v", kind, {"num_partitions": 2}) for kind in ("IVF_FLAT", "IVF_SQ", "IVF_RQ", "IVF_HNSW_SQ")),
    *(("v", kind, {"num_partitions": 2, "num_sub_vectors": 2}) for kind in ("IVF_PQ", "IVF_HNSW_PQ")),
]


def test_indices_of_each_kind(tmp_path: Path) -> None:
    uri, count = str(tmp_path / LEAF), 300
    vectors = pa.FixedSizeListArray.from_arrays(np.arange(count * 8, dtype="f4"), 8)
    words = [f"word{number % 7} text" for number in range(count)]
    many = [["a", "b"]] * count
    data = pa.table({"id": pa.array(range(count), pa.int64()), "text": words, "many": many, "v": vectors})
    lance.write_dataset(data, uri)
    for column, kind, params in INDICES:
        for name in ("kept", "lost"):
            create = getattr(lance.dataset(uri), "create_index" if kind.startswith("IVF") else "create_scalar_index")
            create(column, kind, name=f"{name}_{kind}", **params)
    for _, kind, _ in INDICES:
        lance.dataset(uri).drop_index(f"lost_{kind}")
    latest = lance.dataset(uri)
    live = {segment.uuid for index in latest.describe_indices() for segment in index.segments}

    swept(tmp_path, latest.version)

    assert set(os.listdir(tmp_path / LEAF / "_indices")) >= live
    assert {Path(path).parts[1] for path in files(tmp_path) if path.startswith("_indices/")} == live
    assert len(live) == len(INDICES)
    again = lance.dataset(uri)
    assert again.to_table(filter="id = 7").num_rows == 1
    assert again.to_table(filter="contains(text, 'word3')").num_rows == 43
    assert again.to_table(full_text_query="word3").num_rows == 43
    assert again.to_table(filter="array_has_any(many, ['a'])").num_rows == count
    assert again.to_table(nearest={"column": "v", "q": np.zeros(8, "f4"), "k": 3}).num_rows == 3


def _merged(uri: str) -> int:
    """Fragments of several files, one of which a column that was added later stands in."""
    lance.write_dataset(numbers(), uri, enable_stable_row_ids=True)
    lance.dataset(uri).add_columns({"more": "id * 2"})
    return int(lance.dataset(uri).version)


def _deleted(uri: str) -> int:
    """Deletions in files of both kinds: few are listed, many are a bitmap."""
    lance.write_dataset(numbers(100_000), uri, max_rows_per_file=50_000)
    lance.dataset(uri).delete("id < 10 OR (id >= 50000 AND id % 3 = 0)")
    return int(lance.dataset(uri).version)


def _reused(uri: str) -> int:
    """A compaction that leaves indices to be remapped later."""
    for first in range(3):
        lance.write_dataset(numbers(50, first * 50), uri, mode="append" if first else "create")
    lance.dataset(uri).create_scalar_index("id", "BTREE")
    lance.dataset(uri).optimize.compact_files(defer_index_remap=True)
    return int(lance.dataset(uri).version)


def _old_names(uri: str) -> int:
    """Manifests under the names that Lance once gave them."""
    lance.write_dataset(numbers(), uri, enable_v2_manifest_paths=False)
    lance.write_dataset(numbers(), uri, mode="overwrite", enable_v2_manifest_paths=False)
    return int(lance.dataset(uri).version)


@pytest.mark.parametrize("make", [_merged, _deleted, _reused, _old_names], ids=lambda make: make.__name__)
def test_what_a_kept_version_needs_stays_and_the_rest_goes(tmp_path: Path, make: Callable[[str], int]) -> None:
    uri = str(tmp_path / LEAF)
    version = make(uri)
    before = read(uri, version)
    lance.fragment.write_fragments(before, lance.dataset(uri))
    if make is not _old_names:
        detached(uri, lance.LanceOperation.Delete([], [0], "x"), version)

    found, removed = swept(tmp_path, version)

    assert (found.broken, found.unknown) == (None, ())
    assert removed.files >= 3
    assert read(uri, version) == before
    kinds = [found for path in files(tmp_path) if (found := parse(path)) is not None]
    assert [file.version for file in kinds if file.kind is Kind.MANIFEST] == [version]
    assert len([file for file in kinds if file.kind is Kind.TRANSACTION]) == 1
    assert swept(tmp_path, version)[1].files == 0


def test_tags_and_branches_keep_what_they_read_of_the_table(tmp_path: Path) -> None:
    uri = str(tmp_path / LEAF)
    lance.write_dataset(numbers(), uri)
    lance.dataset(uri).create_scalar_index("id", "BTREE")
    lance.dataset(uri).tags.create("early", 2)
    branch = lance.dataset(uri).create_branch("dev/one", 2)
    lance.write_dataset(numbers(10, 500), branch, mode="append").delete("id = 3")
    inner = lance.dataset(branch.uri).create_branch("two")
    lance.write_dataset(numbers(10, 600), inner, mode="append")
    for first in (1000, 2000):
        lance.write_dataset(numbers(10, first), uri, mode="overwrite")
    latest = int(lance.dataset(uri).version)
    uris = [path.parent for path in (tmp_path / LEAF / "tree").rglob("_versions")]
    before = [(str(each), read(str(each))) for each in uris]
    assert len(before) == 2

    _, removed = swept(tmp_path, latest)

    assert removed.files > 0
    assert read(uri, "early") == numbers()
    assert [(each, read(each)) for each, _ in before] == before
    assert lance.dataset(uri, version="early").to_table(filter="id = 7").num_rows == 1
    assert read(uri) == numbers(10, 2000)


def test_files_of_unknown_kinds_are_kept_and_reported(tmp_path: Path) -> None:
    uri = str(tmp_path / LEAF)
    lance.write_dataset(numbers(), uri)
    strange = ["data/notes.txt", "_fri/1/map.lance", "_mem_wal/7/x", "_indices/mine/a", "README", "data/a/b/c.blob"]
    strange += ["_blobs/x.blob", "_row_ids/1.bin"]
    for path in strange:
        (tmp_path / LEAF / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / LEAF / path).write_bytes(b"?")

    found, removed = swept(tmp_path, 1)

    assert set(found.unknown) == {f"{LEAF}/{path}" for path in strange}
    assert removed.files == 0
    assert set(strange) <= files(tmp_path)
    bare = sweep.look(Looking(root=Root.parse(str(tmp_path)), top=LEAF, members=(), cutoff=soon()))
    assert (bare.garbage, set(bare.unknown)) == ((), set(found.unknown))


def test_a_directory_without_a_name_goes_as_a_whole_unless_someone_holds_on_to_it(tmp_path: Path) -> None:
    uri, at = str(tmp_path / LEAF), Root.parse(str(tmp_path))
    lance.write_dataset(numbers(), uri)
    looking = Looking(root=at, top=LEAF, members=(), cutoff=soon())
    lance.dataset(uri).tags.create("mine", 1)
    assert sweep.look(looking).garbage == ()

    lance.dataset(uri).tags.delete("mine")
    found = sweep.look(looking)
    assert {item.path.split("/", 1)[1] for item in found.garbage} == files(tmp_path)
    sweep.remove(Removing(root=at, top=LEAF, garbage=found.garbage))
    assert not (tmp_path / LEAF).exists()


def test_a_table_that_cannot_be_read_is_left_as_it_is(tmp_path: Path) -> None:
    uri = str(tmp_path / LEAF)
    lance.write_dataset(numbers(), uri)
    lance.fragment.write_fragments(numbers(), lance.dataset(uri))
    before = files(tmp_path)

    found, removed = swept(tmp_path, 1, 7)

    assert found.broken is not None
    assert (found.garbage, removed.files) == ((), 0)
    assert files(tmp_path) == before


def test_a_table_whose_row_ids_are_outside_in_a_way_that_lance_does_not_read_is_left_as_it_is(tmp_path: Path) -> None:
    """The format's ``external_row_ids`` (field 6) in the place of ``inline_row_ids`` (field 5): nobody writes them."""
    uri = str(tmp_path / LEAF)
    lance.write_dataset(numbers(100), uri, enable_stable_row_ids=True)
    lance.fragment.write_fragments(numbers(), lance.dataset(uri))
    (manifest,) = (tmp_path / LEAF / "_versions").glob("*.manifest")
    inline = b"\x2a\x06\x0a\x04\x0a\x02\x10\x64"
    assert manifest.read_bytes().count(inline) == 1
    manifest.write_bytes(manifest.read_bytes().replace(inline, b"\x32" + inline[1:]))
    before = files(tmp_path)

    found, removed = swept(tmp_path, 1)

    assert "row ids" in str(found.broken)
    assert (found.garbage, removed.files) == ((), 0)
    assert files(tmp_path) == before


def test_no_version_is_opened_where_no_file_is_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = str(tmp_path / LEAF)
    version = int(lance.write_dataset(numbers(), uri).version)
    lance.fragment.write_fragments(numbers(), lance.dataset(uri))
    opened: list[int | None] = []
    plain = sweep.leaf_files.needed

    def noted(root: Any, location: str, version: int | None, **options: bool) -> set[str]:
        opened.append(version)
        return plain(root, location, version, **options)

    monkeypatch.setattr(sweep.leaf_files, "needed", noted)
    at, member = Root.parse(str(tmp_path)), Member(location=LEAF, versions=frozenset({version}))
    young = datetime.now(UTC) - timedelta(hours=1)

    assert sweep.look(Looking(root=at, top=LEAF, members=(member,), cutoff=young)).garbage == ()
    assert opened == []
    assert len(sweep.look(Looking(root=at, top=LEAF, members=(member,), cutoff=soon())).garbage) == 1
    assert len(opened) == 2
