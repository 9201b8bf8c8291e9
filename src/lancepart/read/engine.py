"""Engines that run the same plans on other machines: handed in by the package, so that reading depends on none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from lancepart.errors import InvalidInputError, UnsupportedOperationError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lancepart.read.join import Join
    from lancepart.read.scan import Scan
    from lancepart.read.search_request import BatchRequest

Item = TypeVar("Item")
Result = TypeVar("Result")


class Executor(Protocol):
    """Does work in pieces: in this process, or on the machines of a cluster."""

    @property
    def is_distributed(self) -> bool:
        """Whether other processes do it, so that all pieces are best handed over at once."""

    def map(
        self, action: Callable[[Item], Result], items: Sequence[Item], what: str, *, progress: bool = True
    ) -> list[Result]:
        """The results of a module's function for each item, in order; ``what`` names the work in a progress bar."""


class Engine(Protocol):
    """What a cluster does with plans that were made here."""

    def scan(self, scan: Scan, session: SparkSession, tasks: int | None) -> DataFrame:
        """The rows of a scan."""

    def join(self, join: Join, session: SparkSession, tasks: int | None) -> DataFrame:
        """The rows of a join."""

    def search(self, scan: Scan, queries: DataFrame, request: BatchRequest) -> DataFrame:
        """The best rows of a scan for each row of a DataFrame."""

    def executor(self, session: SparkSession) -> Executor:
        """What does work in pieces."""


class NoEngine:
    """What there is before an engine is handed in."""

    def scan(self, scan: Scan, session: SparkSession, tasks: int | None) -> DataFrame:
        """Refuse it."""
        raise _missing()

    def join(self, join: Join, session: SparkSession, tasks: int | None) -> DataFrame:
        """Refuse it."""
        raise _missing()

    def search(self, scan: Scan, queries: DataFrame, request: BatchRequest) -> DataFrame:
        """Refuse it."""
        raise _missing()

    def executor(self, session: SparkSession) -> Executor:
        """Refuse it."""
        raise _missing()


def _missing() -> UnsupportedOperationError:
    return UnsupportedOperationError("plans are run on Spark by lancepart.spark: import lancepart first")


_engines: list[Engine] = [NoEngine()]


def install(engine: Engine) -> None:
    """Hand in the engine that runs plans on a cluster from now on."""
    _engines[0] = engine


def cluster(session: object = True) -> Engine:
    """The engine that runs plans on a cluster, by a session of its own."""
    if session is None:
        raise InvalidInputError("spark is None: give a SparkSession, such as lancepart.spark.session()")
    return _engines[0]
