"""The pages about the code are true: the modules, classes and functions that they name exist."""

from __future__ import annotations

import ast
import importlib.util
import re
import tomllib
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import lancepart

ROOT = Path(__file__).parents[2]
JAVA = ROOT / "jvm" / "src" / "io" / "lancepart" / "spark"
MIRRORED = ("storage", "catalog")
NAVIGATION = re.findall(r"^ +- (?:[\w ]+: )?([\w/.-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
REFERENCE = (ROOT / "docs" / "reference.md").read_text()
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()


def module(name: str) -> Path | None:
    """The file that a page means by a path such as ``commit/verbs.py`` or ``LanceScan.java``."""
    if name.endswith(".java"):
        return JAVA / name if (JAVA / name).exists() else None
    return next((path for home in ("src/lancepart", "src", "") if (path := ROOT / home / name).exists()), None)


@cache
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


def test_the_readme_links_pages_that_exist() -> None:
    linked = re.findall(r"\]\(((?!http)[^)#]+)", (ROOT / "README.md").read_text())
    assert len(linked) > 30
    assert not [name for name in linked if not (ROOT / name).exists()]


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert set(NAVIGATION) == pages, "name each page of docs/ once in the nav of mkdocs.yml"
    assert len(NAVIGATION) == len(pages)


@pytest.mark.quick
@pytest.mark.parametrize("page", NAVIGATION)
def test_pages_link_to_what_a_reader_has(page: str) -> None:
    """Links stay inside docs/ or go to the web; the site has nothing else."""
    path = ROOT / "docs" / page
    text = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(((?!https?:|#)[^)#]+)", text):
        found = (path.parent / target).resolve()
        assert found.exists(), target
        assert found.is_relative_to(ROOT / "docs"), target


@pytest.mark.quick
@pytest.mark.parametrize("page", NAVIGATION)
def test_a_page_that_cites_the_source_says_how_to_get_it(page: str) -> None:
    """Readers have the site and the wheel: not the tests, and none of the documents that we implement."""
    text = re.sub(r"!\[[^]]*\]\([^)]*\)|```.*?```", "", (ROOT / "docs" / page).read_text(), flags=re.DOTALL)
    cited = re.findall(r"\b(?:tests|benchmarks|examples|jvm|shared|spec)/\w[\w/.]*", text)
    says = re.search(r"\]\((?:\.\./)?(?:conformance|install)\.md", text) is not None

    assert not cited or says, cited
    assert not re.findall(r"\b\d{3}_[0-9a-f]{16}\b", text)


def test_every_environment_variable_is_in_the_settings() -> None:
    texts = [path.read_text() for path in (ROOT / "src").rglob("*.py")] + [(ROOT / "jvm" / "hook.py").read_text()]
    used = {name for text in texts for name in re.findall(r"\bLANCEPART_[A-Z_]+", text)}
    assert "LANCEPART_JAR" in used
    page = (ROOT / "docs" / "settings.md").read_text()
    assert not [name for name in sorted(used) if f"`{name}`" not in page]


def test_every_public_parameter_and_field_is_explained() -> None:
    spec = importlib.util.spec_from_file_location("api", ROOT / "site" / "api.py")
    assert spec is not None
    assert spec.loader is not None
    api = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(api)
    page = (ROOT / "docs" / "api.md").read_text()
    used = {name for _, function in api.callables() for name in api.parameters(function)}
    assert set(api.explained(page)) == used
    found = {f"{owner}.{name}": text for owner, kind in api.CLASSES.items() for name, _, text in api.attributes(kind)}
    assert len(found) >= 60
    assert not [name for name, text in found.items() if not text.endswith(".")]
    described = {*api.FUNCTIONS, *api.CLASSES, "config"} - {"Config", "Plots"}
    assert described | {"__version__", "errors", "spark"} == set(lancepart.__all__)
    whole = api.on_page_markdown(page)
    assert "### create_table\n" in whole
    for line in ("PartitionedTable.search(", "Plots.skew(", "Maintenance.repair(", "Inspect.broken_unions("):
        assert f"```python\n{line}" in whole
    for line in (
        "- `rows_added`: `int`: How many rows are new",
        "- `threads`: `int`: ",
        "- `tags`: `Tags`: ",
        "distance_type: Literal['l2', ",
    ):
        assert line in whole
    assert "bind_specs" not in whole
    assert "**options" not in whole


@pytest.mark.parametrize("page", ["README.md", "docs/install.md", "docs/deploy.md"])
def test_pages_install_the_wheel_of_this_version(page: str) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    named = re.findall(r"lancepart-([\d.]+)-py3-none-any\.whl", (ROOT / page).read_text())
    assert set(named) == {version}


def test_the_versions_that_ci_runs_are_those_that_the_package_allows() -> None:
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pythons, sparks = (re.findall(r"\d+\.\d+", found) for found in re.findall(r"(?:python|spark): \[(.*)\]", workflow))
    assert (pythons, sparks) == (["3.11", "3.12", "3.13"], ["4.1", "4.2", "4.3"])
    assert project["requires-python"] == f">={pythons[0]}"
    assert f"pyspark>={sparks[0]},<5" in project["optional-dependencies"]["spark"]
    build = (ROOT / "jvm" / "build.py").read_text()
    assert f'PYSPARK = "pyspark>={sparks[0]},<5"' in build
    assert f'OLDEST = "pyspark=={sparks[0]}.*"' in build
    run = re.findall(r"^\| ([\d., ]+) \| .*tests", (ROOT / "docs" / "spark.md").read_text(), re.MULTILINE)
    assert sorted(version for line in run for version in line.split(", ")) == sparks


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


@pytest.mark.parametrize("page", ["reference.md", "errors.md"])
def test_pages_list_each_error_with_its_code(page: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    listed = set()
    for names, codes in re.findall(r"^\| (`\w+Error`[^|]*) \| ([\d, ]+) \|", text, re.MULTILINE):
        found = [int(getattr(lancepart.errors, name).code) for name in re.findall(r"\w+", names)]
        assert found == [int(code) for code in codes.split(", ")]
        listed |= set(re.findall(r"\w+", names))
    errors = {name for name in lancepart.errors.__all__ if name.endswith("Error")}
    assert errors - listed <= {"LanceNamespaceError"}


def test_the_promises_of_searches_name_tests_that_exist() -> None:
    page = (ROOT / "docs" / "conformance-search.md").read_text()
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", page)
    assert len(named) > 50
    assert [(path, test) for path, test in named if test not in defined(ROOT / path)] == []


def test_every_option_property_and_procedure_is_on_the_page() -> None:
    from lancepart.spark import options
    from lancepart.spark.procedures import PROCEDURES

    page = (ROOT / "docs" / "sql-options.md").read_text()
    named = {*options._KNOWN.values(), *options._PROPERTIES, *options._WRITES, *PROCEDURES}
    assert not [name for name in sorted(named) if f"`{name}`" not in page]
    for name, procedure in PROCEDURES.items():
        (line,) = re.findall(rf"^\| `{name}` \| (.*)", page, re.MULTILINE)
        default = {each.name: "" if each.default is None else f" = {each.default}" for each in procedure.parameters}
        assert not [
            each for each in procedure.parameters if f"`{each.name} {each.type}{default[each.name]}`" not in line
        ]
        assert not [column for column in procedure.columns.names if f"`{column}`" not in line]
