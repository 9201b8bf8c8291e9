"""The pages about the code are true: the modules, classes and functions that they name exist."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import lancepart

ROOT = Path(__file__).parents[2]
JAVA = ROOT / "jvm" / "src" / "io" / "lancepart" / "spark"
MIRRORED = ("storage", "catalog")
REFERENCE = (ROOT / "docs" / "reference.md").read_text()
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()


def module(name: str) -> Path | None:
    """The file that a page means by a path such as ``commit/verbs.py`` or ``LanceScan.java``."""
    if name.endswith(".java"):
        return JAVA / name if (JAVA / name).exists() else None
    return next((path for home in ("src/lancepart", "src", "") if (path := ROOT / home / name).exists()), None)


def defined(path: Path) -> set[str]:
    """The classes, functions and methods of a module."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds)}


def test_the_architecture_page_names_modules_that_exist() -> None:
    named = set(re.findall(r"`([\w/]+\.(?:py|java))`", ARCHITECTURE))
    assert len(named) > 30
    assert not [name for name in sorted(named) if module(name) is None]


def test_the_architecture_page_names_functions_that_exist() -> None:
    missing = []
    for found in re.finditer(r"`([\w/]+\.py)`: (`\w+`(?:, `\w+`)*)", ARCHITECTURE):
        path = module(found.group(1))
        names = re.findall(r"\w+", found.group(2))
        missing += [f"{found.group(1)}: {name}" for name in names if path is None or name not in defined(path)]
    assert not missing


def test_the_architecture_page_describes_every_room() -> None:
    rooms = {path.name for path in (ROOT / "src" / "lancepart").iterdir() if (path / "__init__.py").exists()}
    assert not [room for room in sorted(rooms) if f"| `{room}/`" not in ARCHITECTURE]


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/releasing.md", "SECURITY.md"])
def test_pages_for_contributors_name_files_that_exist(page: str) -> None:
    text = (ROOT / page).read_text()
    named = re.findall(r"`((?:src|tests|docs|jvm|benchmarks|examples|\.github)/[\w/.-]*)`", text)
    named += re.findall(r"\]\(((?!http)[\w/.-]+)\)", text) if page == "SECURITY.md" else []
    assert not [name for name in named if not (ROOT / name).exists()]


def test_the_readme_links_every_page_and_no_other() -> None:
    linked = re.findall(r"\]\(((?!http)[^)#]+)", (ROOT / "README.md").read_text())
    assert not [name for name in linked if not (ROOT / name).exists()]
    assert {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md")} <= set(linked)


def test_the_readme_installs_the_wheel_of_this_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    named = re.findall(r"lancepart-([\d.]+)-py3-none-any\.whl", (ROOT / "README.md").read_text())
    assert set(named) == {version}


def test_the_versions_that_ci_runs_are_those_that_the_package_allows() -> None:
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pythons, sparks = (re.findall(r"\d+\.\d+", found) for found in re.findall(r"(?:python|spark): \[(.*)\]", workflow))
    assert (pythons, sparks) == (["3.11", "3.12", "3.13"], ["4.1", "4.2", "4.3"])
    assert project["requires-python"] == f">={pythons[0]}"
    assert f"pyspark>={sparks[0]},<5" in project["optional-dependencies"]["spark"]


@pytest.mark.parametrize("room", MIRRORED)
def test_every_module_has_a_test_module_of_its_own(room: str) -> None:
    modules = {path.stem for path in (ROOT / "src" / "lancepart" / room).glob("*.py")} - {"__init__"}
    tests = {path.stem.removeprefix("test_") for path in (ROOT / "tests" / "unit" / room).glob("test_*.py")}
    assert sorted(modules - tests) == []


@pytest.mark.parametrize("package", [lancepart, lancepart.errors, lancepart.spark], ids=lambda each: each.__name__)
def test_what_is_public_is_there_and_documented(package: ModuleType) -> None:
    assert sorted(package.__all__) == list(package.__all__)
    for name in package.__all__:
        assert getattr(package, name) is not None
        assert re.search(rf"`(spark\.)?{name}`", REFERENCE), f"{name} is public and docs/reference.md does not list it"


def test_public_names_are_complete() -> None:
    assert set(lancepart._MODULES) | {"__version__", "errors", "spark"} == set(lancepart.__all__)
    classes = {name for name, value in vars(lancepart.errors).items() if isinstance(value, type) and name[0] != "_"}
    assert classes - {"IntEnum"} == set(lancepart.errors.__all__)


def test_the_reference_lists_each_error_with_its_code() -> None:
    for names, codes in re.findall(r"^\| (`\w+Error`[^|]*) \| ([\d, ]+) \|", REFERENCE, re.MULTILINE):
        found = [int(getattr(lancepart.errors, name).code) for name in re.findall(r"\w+", names)]
        assert found == [int(code) for code in codes.split(", ")]
