"""Jobs for a scheduler: each can be run again, and reports its result by exit code and a last line of JSON."""

from __future__ import annotations

import json
import sys
import time
import tomllib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from lancepart.errors import InvalidInputError, TableNotFoundError
from lancepart.model.aliases import IndexKind, JsonMapping, JsonObject
from lancepart.model.duration import age
from lancepart.spark import remove_orphans
from lancepart.spark.calls import value_of
from lancepart.spark.importing import FILES, import_table
from lancepart.spark.ingestion import Ingestion, IngestSource
from lancepart.spark.new_columns import new_columns
from lancepart.spark.options import check_keys
from lancepart.spark.session_builder import session
from lancepart.spark.writing import partition_list
from lancepart.table import PartitionedTable, create_table, open_table, upgrade

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
_CONFIG = "--config"
_FAILED = 1
_INTERRUPTED = 130

Root = Annotated[str, typer.Option(help="where the table is")]
Master = Annotated[str | None, typer.Option(help="Spark's master; under spark-submit the one given there")]
Conf = Annotated[list[str], typer.Option(help="a setting of Spark's, key=value")]
Storage = Annotated[list[str], typer.Option(help="a storage option, key=value")]


class JobRun:
    """One run: the session, the table, and the summary at its end."""

    def __init__(self, name: str, root: str, master: str | None, conf: Sequence[str], storage: Sequence[str]) -> None:
        self.name, self.root = name, root
        self.storage = pairs(storage)
        self.spark = _session(master, pairs(conf))
        self.begun = time.monotonic()

    @property
    def table(self) -> PartitionedTable:
        """The table that the job works on."""
        return open_table(self.root, storage_options=self.storage)

    def done(self, **summary: object) -> None:
        """Print the summary."""
        payload = {"job": self.name, "ok": True, "root": self.root, "seconds": round(time.monotonic() - self.begun, 3)}
        print(json.dumps(payload | summary, default=str), flush=True)


@app.command()
def ingest(
    root: Root,
    source: Annotated[str, typer.Option(help="what to read: a path, or the name of a Spark table")],
    format: Annotated[str, typer.Option(help="what Spark reads it as: parquet, json, csv, table, …")] = "parquet",
    mode: Annotated[str, typer.Option(help="append, overwrite or upsert")] = "append",
    on: Annotated[str, typer.Option(help="the key columns of an upsert")] = "",
    where: Annotated[str | None, typer.Option(help="which rows an overwrite replaces")] = None,
    key: Annotated[str | None, typer.Option(help="the run's name: of all runs with one name one commits")] = None,
    option: Annotated[list[str], typer.Option(help="an option of Spark's reader, key=value")] = [],  # noqa: B006
    columns: Annotated[str | None, typer.Option(help="the source's columns, such as 'id long, day date'")] = None,
    partition_by: Annotated[str, typer.Option(help="how a table that is not there yet is partitioned")] = "",
    master: Master = None,
    conf: Conf = [],  # noqa: B006
    storage: Storage = [],  # noqa: B006
) -> None:
    """Append, overwrite or upsert what Spark can read."""
    ingestion = Ingestion(mode=mode, on=on, where=where, key=key)
    read = IngestSource(name=source, format=format, columns=columns, options=pairs(option))
    job = JobRun("ingest", root, master, conf, storage)
    frame = read.frame(job.spark)
    table = _made(job, frame, partition_by)
    before = table.version
    version = ingestion.write(frame, table)
    job.done(mode=mode, key=key, version=version, changed=version != before)


@app.command("import")
def run_import(
    root: Root,
    source: Annotated[str, typer.Option(help="a path of Parquet, Delta or Iceberg, or the name of a Spark table")],
    partition_by: Annotated[str, typer.Option(help="how a table that is not there yet is partitioned")] = "",
    format: Annotated[str | None, typer.Option(help="parquet, delta, iceberg or spark; found out otherwise")] = None,
    source_version: Annotated[int | None, typer.Option(help="the version of the source")] = None,
    files_per_commit: Annotated[int, typer.Option(help="how many files a commit takes in")] = FILES,
    master: Master = None,
    conf: Conf = [],  # noqa: B006
    storage: Storage = [],  # noqa: B006
) -> None:
    """Import another table; a run that was stopped is resumed."""
    job = JobRun("import", root, master, conf, storage)
    by = partition_list(partition_by) if partition_by else ()
    found = import_table(
        job.spark,
        source,
        root,
        by,
        format=format,
        version=source_version,
        files_per_commit=files_per_commit,
        storage_options=job.storage,
    )
    job.done(**{key: value for key, value in found.to_json().items() if key != "root"})


@app.command()
def compact(
    root: Root,
    target_rows: Annotated[int, typer.Option(help="how many rows a fragment is to have")] = 1024 * 1024,
    master: Master = None,
    conf: Conf = [],  # noqa: B006
    storage: Storage = [],  # noqa: B006
) -> None:
    """Put small fragments together and drop deleted rows."""
    job = JobRun("compact", root, master, conf, storage)
    job.done(**asdict(job.table.maintenance.compact(target_rows=target_rows, spark=job.spark)))


@app.command()
def rewrite(
    root: Root,
    where: Annotated[str | None, typer.Option(help="which rows to move")] = None,
    master: Master = None,
    conf: Conf = [],  # noqa: B006
    storage: Storage = [],  # noqa: B006
) -> None:
    """Move rows that older specs placed into the partitions of the newest."""
    job = JobRun("rewrite", root, master, conf, storage)
    job.done(**asdict(job.table.maintenance.rewrite(where, spark=job.spark)))


@app.command()
def index(
    root: Root,
    column: Annotated[str, typer.Option(help="the column")],
    kind: Annotated[str, typer.Option(help="BTREE, BITMAP, IVF_PQ, …")],
    name: Annotated[str | None, typer.Option(help="what the index is called")] = None,
    param: Annotated[list[str], typer.Option(help="a parameter of the index, key=value")] = [],  # noqa: B006
    master: Master = None,
    conf: Conf = [],  # noqa: B006
    storage: Storage = [],  # noqa: B006
) -> None:
    """Build an index in every leaf, in place of one of the same name."""
    job = JobRun("index", root, master, conf, storage)
    given = {key: value_of(text) for key, text in pairs(param).items()}
    what = cast(IndexKind, kind)
    job.done(**asdict(job.table.maintenance.create_index(column, what, name=name, spark=job.spark, **given)))


@app.command()
def expire(
    root: Root,
    older_than: Annotated[str, typer.Option(help="an age such as 7d, 12h or 30m, or a moment")],
    master: Master = None,
    conf: Conf = [],  # noqa: B006
    storage: Storage = [],  # noqa: B006
) -> None:
    """Forget old snapshots and remove what only they needed."""
    limit = age(older_than)
    job = JobRun("expire", root, master, conf, storage)
    job.done(**asdict(job.table.maintenance.expire(limit, spark=job.spark)))


@app.command()
def orphans(
    root: Root,
    older_than: Annotated[str, typer.Option(help="an age, longer than the longest write: 3d")],
    dry_run: Annotated[bool, typer.Option(help="only list what would be removed")] = False,
    warehouse: Annotated[
        bool, typer.Option(help="the root is a warehouse: remove tables that it does not name")
    ] = False,
    master: Master = None,
    conf: Conf = [],  # noqa: B006
    storage: Storage = [],  # noqa: B006
) -> None:
    """Remove files that failed writers left."""
    limit = age(older_than)
    job = JobRun("orphans", root, master, conf, storage)
    if warehouse:
        found = remove_orphans(root, limit, dry_run, storage_options=job.storage)
    else:
        found = job.table.maintenance.remove_orphans(limit, dry_run, spark=job.spark)
    job.done(dry_run=dry_run, **asdict(found))


@app.command("upgrade")
def run_upgrade(
    root: Root,
    namespace: Annotated[str, typer.Option(help="the path of a table inside a larger catalog, with dots")] = "",
    remove_old: Annotated[bool, typer.Option(help="remove the old tree")] = False,
    master: Master = None,
    conf: Conf = [],  # noqa: B006
    storage: Storage = [],  # noqa: B006
) -> None:
    """Turn a table of an older layout into the current one."""
    job = JobRun("upgrade", root, master, conf, storage)
    parts = namespace.split(".") if namespace else ()
    made = upgrade(root, namespace=parts, spark=job.spark, remove_old=remove_old, storage_options=job.storage)
    job.done(version=made.version, rows=made.scan().count())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a job; the exit code is 0, 1 if it failed, 2 if its arguments are wrong, 130 if it was interrupted."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        given, defaults = configured(given)
        code = typer.main.get_command(app).main(given, standalone_mode=False, default_map=defaults)
    except typer.Abort:
        print(json.dumps({"job": given[0] if given else None, "ok": False, "error": "interrupted"}), flush=True)
        sys.exit(_INTERRUPTED)
    except Exception as error:
        if isinstance(code := getattr(error, "exit_code", None), int):
            error.show() if hasattr(error, "show") else None
            sys.exit(code)
        payload = {"job": given[0] if given else None, "ok": False, "error": f"{type(error).__name__}: {error}"}
        print(json.dumps(payload), flush=True)
        sys.exit(_FAILED)
    sys.exit(code if isinstance(code, int) else 0)


def configured(arguments: Sequence[str]) -> tuple[list[str], JsonObject]:
    """The arguments without ``--config``, and what that file says: for all jobs, and for each under its name."""
    left = list(arguments)
    place = next((at for at, each in enumerate(left) if each == _CONFIG or each.startswith(f"{_CONFIG}=")), None)
    if place is None:
        return left, {}
    first = left.pop(place)
    path = first.partition("=")[2] or (left.pop(place) if place < len(left) else "")
    try:
        payload = tomllib.loads(Path(path).read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise typer.BadParameter(f"{_CONFIG} {path}: {error}") from None
    _refuse_unknown(payload, path)
    shared = {
        key.replace("-", "_"): _listed(value) for key, value in payload.items() if key != "job" and not _is_job(key)
    }
    if "job" in payload and not any(_is_job(each) for each in left):
        left.insert(0, str(payload["job"]))
    names = [command.name or str(getattr(command.callback, "__name__", "")) for command in app.registered_commands]
    own = {
        name: {key.replace("-", "_"): _listed(value) for key, value in payload.get(name, {}).items()} for name in names
    }
    return left, {name: shared | own[name] for name in names}


def _refuse_unknown(payload: JsonMapping, path: str) -> None:
    """Refuse keys that no job has, or that the job of their section does not have."""
    commands: JsonMapping = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    known = {name: [str(each.name) for each in command.params] for name, command in commands.items()}
    every = {key for keys in known.values() for key in keys}
    own = {name: payload[name] if isinstance(payload.get(name), dict) else {} for name in known}
    try:
        check_keys([key.replace("-", "_") for key in payload], {*every, *known, "job"}, path)
        for name, keys in known.items():
            check_keys([key.replace("-", "_") for key in own[name]], keys, f"[{name}] of {path}")
    except InvalidInputError as error:
        raise typer.BadParameter(f"{_CONFIG} {error}") from None


def _is_job(name: str) -> bool:
    return name in {"ingest", "import", "compact", "rewrite", "index", "expire", "orphans", "upgrade"}


def _listed(value: object) -> object:
    """A TOML table where the command line has key=value, several times."""
    return [f"{key}={each}" for key, each in value.items()] if isinstance(value, dict) else value


def pairs(texts: Sequence[str]) -> dict[str, str]:
    """Options of the form key=value.

    >>> pairs(["aws_region=eu-west-1", "endpoint=http://x?a=b"])
    {'aws_region': 'eu-west-1', 'endpoint': 'http://x?a=b'}
    """
    if wrong := [text for text in texts if "=" not in text]:
        raise typer.BadParameter(f"write {wrong[0]!r} as key=value")
    return {key: value for key, _, value in (text.partition("=") for text in texts)}


def _session(master: str | None, conf: dict[str, str]) -> SparkSession:
    """The session of spark-submit, or one of our own."""
    return session(master, warehouse=None, **{"spark.ui.showConsoleProgress": "false"} | conf)


def _made(job: JobRun, frame: DataFrame, partition_by: str) -> PartitionedTable:
    try:
        return job.table
    except TableNotFoundError:
        if not partition_by:
            raise
    return create_table(job.root, new_columns(frame.schema), partition_list(partition_by), storage_options=job.storage)
