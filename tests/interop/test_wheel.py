"""Wheels and source distributions carry the jar, and work where there is no checkout."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lancepart
from tests.support.pages import README

CHECKOUT = Path(lancepart.__file__).resolve().parents[2]
JAR = "lancepart/spark/jars/lancepart-spark.jar"
BUILD = """
import sys
{first}
from hatchling import build
{code}
"""
NO_SPARK = "sys.modules['pyspark'] = None"
USE = """
import sys
import lancepart as lp
from lancepart.spark.session_builder import jar
assert lp.__file__.startswith(sys.argv[1]) and jar().startswith(sys.argv[1]), (lp.__file__, jar())
spark = lp.spark.session("local[1]", warehouse=sys.argv[2], **{"spark.ui.enabled": "false"})
spark.sql("CREATE NAMESPACE lance.ns")
spark.sql("CREATE TABLE lance.ns.t PARTITIONED BY (k) AS SELECT id, id % 2 AS k FROM range(10)")
assert spark.table("lance.ns.t").where("k = 1").count() == 5
spark.stop()
"""

pytestmark = pytest.mark.slow


def run(code: str, *given: object, cwd: Path, **environment: str) -> str:
    command = [sys.executable, "-c", code, *map(str, given)]
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(kind: str, source: Path, target: Path, *, spark: bool = True, **environment: str) -> Path:
    """What hatchling builds of a directory of sources."""
    code = BUILD.format(first="" if spark else NO_SPARK, code=f"print(build.build_{kind}(sys.argv[1]))")
    return target / run(code, target, cwd=source, **environment).splitlines()[-1]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's own files, and nothing that was built."""
    target = tmp_path_factory.mktemp("clone")
    for name in ("src", "jvm", "docs", "pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        found = CHECKOUT / name
        if found.is_dir():
            shutil.copytree(found, target / name, ignore=shutil.ignore_patterns("jars", "__pycache__"))
        else:
            shutil.copy2(found, target / name)
    return target


@pytest.fixture(scope="module")
def sdist(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An unpacked source distribution of a clean clone."""
    target = tmp_path_factory.mktemp("sdist")
    made = build("sdist", clone, target)
    with tarfile.open(made) as archive:
        archive.extractall(target, filter="data")
    return target / made.name.removesuffix(".tar.gz")


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of the source distribution, made where there is neither a JDK nor Spark."""
    return build("wheel", sdist, tmp_path_factory.mktemp("wheel"), spark=False, PATH="", SPARK_HOME="")


def contents(wheel: Path) -> Mapping[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_a_wheel_of_a_clean_clone_has_the_jar(clone: Path, sdist: Path, tmp_path: Path) -> None:
    made = contents(build("wheel", clone, tmp_path))
    assert made[JAR] == (clone / "src" / JAR).read_bytes() == (sdist / "src" / JAR).read_bytes()


def test_a_wheel_of_a_source_distribution_needs_neither_a_jdk_nor_spark(clone: Path, sdist: Path, wheel: Path) -> None:
    assert contents(wheel)[JAR] == (clone / "src" / JAR).read_bytes()
    code = BUILD.format(first=NO_SPARK, code="print(build.get_requires_for_build_wheel())")
    assert run(code, cwd=sdist, PATH="", SPARK_HOME="").splitlines()[-1] == "[]"


def test_a_wheel_installs_the_command(wheel: Path) -> None:
    (entries,) = [text for name, text in contents(wheel).items() if name.endswith("entry_points.txt")]
    assert b"lancepart = lancepart.cli.app:main" in entries


def test_the_jar_can_be_left_out(clone: Path, tmp_path: Path) -> None:
    assert JAR not in contents(build("wheel", clone, tmp_path, spark=False, PATH="", LANCEPART_JAR="0"))


def test_what_is_missing_for_the_jar_is_asked_for_or_named(clone: Path, tmp_path: Path) -> None:
    fresh = tmp_path / "fresh"
    shutil.copytree(clone, fresh, ignore=shutil.ignore_patterns("jars"))
    wanted = "print(build.get_requires_for_build_wheel())"
    asked = run(BUILD.format(first=NO_SPARK, code=wanted), cwd=fresh, SPARK_HOME="")
    assert asked.splitlines()[-1] == "['pyspark==4.1.*']"
    assert run(BUILD.format(first="", code=wanted), cwd=fresh).splitlines()[-1] == "[]"
    with pytest.raises(AssertionError, match=r"needs a JDK 17 or newer.*LANCEPART_JAR=0"):
        build("wheel", fresh, tmp_path, PATH="")
    with pytest.raises(AssertionError, match=r"compiled against Spark's jars.*LANCEPART_JAR=0"):
        build("wheel", fresh, tmp_path, spark=False, SPARK_HOME="")


def test_an_installed_wheel_runs_on_spark(wheel: Path, tmp_path: Path) -> None:
    place = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(place)
    run(USE, place, tmp_path / "warehouse", cwd=tmp_path, PYTHONPATH=str(place))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a fresh environment with the wheel alone, which sees the project's dependencies."""
    place = tmp_path_factory.mktemp("fresh") / "venv"
    venv.create(place, with_pip=False)
    (packages,) = place.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    pip = [sys.executable, "-m", "pip", "--python", str(place / "bin" / "python"), "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--no-index", str(wheel)], check=True, env=alone())
    return place / "bin"


def alone() -> dict[str, str]:
    """An environment in which no checkout is found."""
    return {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}


def program(*command: object, cwd: Path) -> str:
    line = [str(each) for each in command]
    done = subprocess.run(line, cwd=cwd, env=alone(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_first_table_of_the_readme_is_made_from_an_installed_wheel(installed: Path, tmp_path: Path) -> None:
    section = README.read_text().partition("## A first table\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    check = f"import lancepart\nassert lancepart.__file__.startswith({str(installed.parent)!r}), lancepart.__file__\n"

    program(installed / "python", "-c", check + "\n".join(blocks), cwd=tmp_path)

    assert blocks
    assert any((tmp_path / "data").iterdir())


def test_the_command_of_an_installed_wheel_loads_and_queries_own_files(installed: Path, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2, 3], "country": ["US", "FR", "US"]}), tmp_path / "rows.parquet")
    command = installed / "lancepart"

    assert program(command, "--version", cwd=tmp_path).startswith("lancepart ")
    program(command, "load", "events", "*.parquet", "--by", "country", cwd=tmp_path)
    answer = program(command, "sql", "SELECT count(*) AS n FROM e", "e=events", "--json", cwd=tmp_path)

    assert json.loads(answer) == [{"n": 3}]
