"""Text files that are not what a CSV file has to be: fields separated by commas, in UTF-8."""

from __future__ import annotations

import pyarrow as pa

from lancepart.errors import InvalidInputError

_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


def refuse_other_separator(path: str, names: list[str]) -> None:
    """Refuse a file of which one line was read as one name, that of all columns."""
    if len(names) != 1:
        return
    for separator, plural in _SEPARATORS.items():
        if separator in names[0]:
            raise InvalidInputError(
                f"{path!r} has one column, {names[0]!r}: its fields are separated by {plural}; separate them by "
                "commas, or by tabs in a file whose name ends with .tsv"
            )


def refuse_other_encoding(path: str, columns: pa.Schema, given: dict[str, pa.DataType]) -> None:
    """Refuse a file with a column of text that is not in UTF-8, which Arrow would take for bytes without a word."""
    for field in columns:
        if pa.types.is_binary(field.type) and field.name not in given:
            raise not_unicode(path, f"column {field.name!r}")


def not_unicode(path: str, where: str) -> InvalidInputError:
    """The error about a text that is in another encoding than UTF-8."""
    return InvalidInputError(
        f"{path!r} is not in UTF-8, as {where} shows: convert it, as in iconv -f LATIN1 -t UTF-8 IN.csv > OUT.csv"
    )
