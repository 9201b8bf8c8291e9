"""Settings of the process, by assignment and by environment."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import ConcurrentModificationError, InvalidInputError
from lancepart.model.config import Config
from lancepart.storage.cache import cache
from lancepart.storage.manifest import Manifest
from lancepart.storage.root import Root
from lancepart.storage.translate import ConflictError

SHOW = "import lancepart as lp; print(lp.config)"


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANCEPART_THREADS", "3")
    monkeypatch.setenv("LANCEPART_CACHE_BYTES", "1000")
    monkeypatch.setenv("LANCEPART_RETRIES", "0")
    monkeypatch.setenv("LANCEPART_PROGRESS", "off")
    assert repr(Config()) == "Config(threads=3, cache_bytes=1000, retries=0, progress=False)"
    shown = subprocess.check_output([sys.executable, "-c", SHOW], text=True, timeout=60)
    assert shown.strip() == repr(Config())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LANCEPART_THREADS", "0"),
        ("LANCEPART_THREADS", "many"),
        ("LANCEPART_CACHE_BYTES", "1 GB"),
        ("LANCEPART_RETRIES", "-1"),
        ("LANCEPART_PROGRESS", "perhaps"),
    ],
)
def test_a_wrong_variable_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(InvalidInputError, match=f"{name} is '{value}'"):
        Config()


@pytest.mark.parametrize(
    ("name", "value"),
    [("threads", 0), ("threads", 1.5), ("cache_bytes", -1), ("retries", "3"), ("progress", "off"), ("thread", 2)],
)
def test_a_wrong_value_is_refused_and_changes_nothing(name: str, value: object) -> None:
    before = repr(lp.config)
    with pytest.raises(InvalidInputError, match=name):
        setattr(lp.config, name, value)
    assert repr(lp.config) == before


def test_the_cache_has_the_size_that_is_set() -> None:
    before = lp.config.cache_bytes
    try:
        lp.config.cache_bytes = 4321
        assert cache.capacity == 4321
    finally:
        lp.config.cache_bytes = before


def test_threads_bound_the_partitions_that_are_read_at_once(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lp.config, "threads", 1)
    sizes: list[int] = []

    class Counting(ThreadPoolExecutor):
        def __init__(self, workers: int, *given: object) -> None:
            sizes.append(workers)
            super().__init__(workers)

    monkeypatch.setattr("lancepart.read.prefetch.ThreadPoolExecutor", Counting)
    table = lp.create_table(f"{tmp_path}/t", pa.schema([("id", pa.int64()), ("k", pa.string())]), ["k"])
    table.append(pa.table({"id": range(6), "k": list("abcabc")}))
    assert sum(batch.num_rows for batch in table.scan().to_batches()) == 6
    assert set(sizes) == {1}


def test_retries_bound_how_often_a_commit_is_tried(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lp.create_table(f"{tmp_path}/t", pa.schema([("id", pa.int64()), ("k", pa.string())]), ["k"])
    tries = []

    def lose(*given: object, **options: object) -> int:
        tries.append(1)
        raise ConflictError("another commit came first")

    monkeypatch.setattr(Manifest, "publish", lose)
    monkeypatch.setattr(lp.config, "retries", 2)
    with pytest.raises(ConcurrentModificationError, match="3 tries"):
        table.append(pa.table({"id": [1], "k": ["a"]}))
    assert len(tries) == 3
    assert Manifest(Root.parse(table.root)).snapshot().version == table.version


def test_the_bar_is_shown_by_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    from lancepart.maintain import progress

    monkeypatch.setattr(lp.config, "progress", False)
    assert list(progress.track([1, 2, 3], "step")) == [1, 2, 3]
    assert "cache_bytes" in lp.config._repr_html_()
