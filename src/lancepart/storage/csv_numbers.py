"""Whole numbers of CSV files that no integer type holds, and that a float would round without a word."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.dataset as ds
import pyarrow.fs as pa_fs

from lancepart.errors import InvalidInputError

_LONG = r"^[+-]?\d{16,}$"


def refuse_rounded(path: str, system: pa_fs.FileSystem, format: ds.CsvFileFormat, columns: pa.Schema) -> None:
    """Refuse a file whose first block has a whole number which the type that was inferred, a float, would round.

    A later block can't have one unnoticed but beside fractions: in a column of integers it can't be read.
    """
    given = format.default_fragment_scan_options.convert_options.column_types
    doubles = [each.name for each in columns if pa.types.is_float64(each.type) and each.name not in given]
    if not doubles:
        return
    options = pa_csv.ConvertOptions(column_types=dict.fromkeys(doubles, pa.string()), include_columns=doubles)
    with system.open_input_stream(path) as stream:
        first = pa_csv.open_csv(stream, parse_options=format.parse_options, convert_options=options).read_next_batch()
    for name, column in zip(first.schema.names, first.columns, strict=True):
        texts = column.filter(pc.match_substring_regex(column, _LONG)).to_pylist()
        rounded = next((text for text in texts if int(text) != int(float(text))), None)
        if rounded is not None:
            raise InvalidInputError(
                f"{path!r} has {rounded} in column {name!r}, which the column's other values make a float, and a float "
                "rounds it: give schema= with a type that holds all of them, such as decimal128(38, 0) or string"
            )
