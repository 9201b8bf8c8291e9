"""Fills the API page when the documentation is built: signatures, docstrings and parameters of what is public."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import lancepart as lp

MARK = "<!-- every public name -->"
FUNCTIONS = (
    "create_table", "create_table_from", "open_table", "load", "exists", "drop_table", "sql", "connect", "scan_polars",
    "upgrade",
)  # fmt: skip
CLASSES: dict[str, tuple[str, ...]] = {
    "PartitionedTable": (
        "append", "overwrite", "delete", "update", "upsert", "merge", "transaction", "scan", "count_rows", "head",
        "sample", "take", "search", "search_batch", "warm", "join", "changes", "update_spec", "add_column",
        "rename_column", "drop_column", "widen_column", "describe", "to_dataset", "lazy", "to_lance", "publish_lance",
        "unpublish_lance",
    ),
    "Result": ("to_arrow", "to_batches", "to_reader", "to_pandas", "to_polars", "to_list", "count"),
    "Scan": ("plan", "explain", "to_spark"),
    "Plan": ("explain",),
    "Join": ("plan", "explain", "to_spark"),
    "Search": ("explain", "recall"),
    "Changes": (),
    "CommitResult": (),
    "Merge": (
        "when_matched_update_all", "when_matched_update", "when_matched_delete", "when_not_matched_insert_all",
        "when_not_matched_insert", "when_not_matched_by_source_update", "when_not_matched_by_source_delete", "execute",
    ),
    "Transaction": ("scan", "append", "overwrite", "delete", "update", "upsert", "merge"),
    "Tags": ("create", "delete", "list"),
    "Inspect": (
        "partitions", "snapshots", "specs", "fragments", "indices", "unions", "broken", "unpublished_commits",
    ),
    "Maintenance": (
        "compact", "rewrite", "expire", "remove_orphans", "create_index", "optimize_indices", "drop_index", "rollback",
    ),
    "MaintenanceResult": (),
    "TableDescription": (),
    "Connection": (
        "sql", "table", "lance_table", "exists", "list_tables", "list_namespaces", "create_namespace", "create_table",
        "drop_table", "rename_table",
    ),
    "Query": (),
    "PartitionedDataset": (),
    "PartitionSpec": (),
    "PartitionField": (),
}  # fmt: skip
SPARK = ("session", "configure", "jar", "cancel", "import_table", "remove_orphans", "upsert_batches")


def on_page_markdown(markdown: str, **_: object) -> str:
    """Called by MkDocs for every page."""
    return markdown.replace(MARK, "\n".join(written(explained(markdown)))) if MARK in markdown else markdown


def explained(markdown: str) -> dict[str, str]:
    """The parameters that the page's table explains."""
    return dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", markdown, re.MULTILINE))


def callables() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public function and method, by the name that it is called by."""
    for name in FUNCTIONS:
        yield f"lp.{name}", getattr(lp, name)
    for name in SPARK:
        yield f"lp.spark.{name}", getattr(lp.spark, name)
    for owner, members in CLASSES.items():
        for name in members:
            yield f"{owner}.{name}", getattr(getattr(lp, owner), name)


def parameters(function: Callable[..., Any]) -> list[str]:
    """The names of a function's parameters."""
    return [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]


def written(meanings: dict[str, str]) -> Iterator[str]:
    """The page's sections."""
    everything = dict(callables())
    yield from _section("Functions", "lp.", everything, meanings, "")
    yield from _section("Spark", "lp.spark.", everything, meanings, "")
    for owner in CLASSES:
        yield from _section(owner, f"{owner}.", everything, meanings, _text(getattr(lp, owner)))


def _section(
    title: str, prefix: str, everything: dict[str, Callable[..., Any]], meanings: dict[str, str], about: str
) -> Iterator[str]:
    yield f"\n## {title}\n\n{about}\n"
    for name, function in everything.items():
        if name.rpartition(".")[0] + "." == prefix:
            yield f"\n### {name.removeprefix('lp.').removeprefix(f'{title}.')}\n\n{_signature(name, function)}\n"
            yield _text(function) + "\n"
            yield from (f"- `{each}`: {meanings[each]}" for each in parameters(function) if each in meanings)


def _signature(name: str, function: Callable[..., Any]) -> str:
    """A signature as one would write it, a parameter a line where it is long."""
    signature = inspect.signature(function)
    shown = [
        str(each).replace(f"'{each.annotation}'", str(each.annotation))
        for each in signature.parameters.values()
        if each.name != "self"
    ]
    stars = [each.kind for each in signature.parameters.values() if each.name != "self"]
    if inspect.Parameter.KEYWORD_ONLY in stars and inspect.Parameter.VAR_POSITIONAL not in stars:
        shown.insert(stars.index(inspect.Parameter.KEYWORD_ONLY), "*")
    back = "" if signature.return_annotation is inspect.Signature.empty else f" -> {signature.return_annotation}"
    line = f"{name}({', '.join(shown)}){back}"
    if len(line) > 100:
        line = f"{name}(\n    " + ",\n    ".join(shown) + f",\n){back}"
    return f"```python\n{line}\n```"


def _text(thing: object) -> str:
    """A docstring as Markdown: examples as code."""
    text = inspect.getdoc(thing) or ""
    text = re.sub(r"``(.+?)``", r"`\1`", text)
    return re.sub(
        r"(^>>> .*(?:\n(?!\n).*)*)",
        lambda found: f"```pycon\n{textwrap.dedent(found[1])}\n```",
        text,
        flags=re.MULTILINE,
    )
