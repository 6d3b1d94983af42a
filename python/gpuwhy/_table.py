# SPDX-License-Identifier: Apache-2.0
"""A table of a recording: rows for Python, columns for data frames."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

if TYPE_CHECKING:
    from gpuwhy._native import Batch
    from gpuwhy._profile import Handle

Row = TypeVar("Row")
_ROWS_AT_ONCE = 4096


class Table(Generic[Row]):
    """Rows of one kind, in the order of the library. Not a Sequence by name: polars would read it row by row.

    A data frame library takes the whole at once, through the Arrow PyCapsule interface: polars.DataFrame(table),
    pandas.DataFrame.from_arrow(table), pyarrow.table(table), duckdb.sql("from table").
    """

    def __init__(self, handle: Handle, name: str, row_type: type[Row] | None) -> None:
        self._handle = handle
        self.name = name
        self._row_type = row_type
        self._batch: Batch | None = None

    def _read(self) -> Batch:
        if self._batch is None:
            from gpuwhy._native import Batch

            with self._handle as pointer:
                self._batch = Batch(pointer, self.name.encode())
        return self._batch

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._read().names

    def column(self, name: str) -> list[Any]:
        """All values of a column."""
        batch = self._read()
        if name not in batch.names:
            raise KeyError(f"{self.name} has no column {name!r}: {', '.join(batch.names)}")
        return batch.values(batch.names.index(name), 0, len(batch))

    def to_dict(self) -> dict[str, list[Any]]:
        """All columns by name."""
        batch = self._read()
        return {name: batch.values(i, 0, len(batch)) for i, name in enumerate(batch.names)}

    def _rows(self, start: int, end: int) -> list[Row]:
        batch = self._read()
        names = batch.names
        columns = {name: batch.values(i, start, end) for i, name in enumerate(names)}
        make: Any = self._row_type
        if make is None:
            return [dict(zip(names, row)) for row in zip(*columns.values())]  # type: ignore[misc]
        return [make(*row) for row in zip(*(columns[name.rstrip("_")] for name in make._fields))]

    def __len__(self) -> int:
        return len(self._read())

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...

    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        if isinstance(index, slice):
            start, end, stride = index.indices(len(self))
            if stride == 1:
                return self._rows(start, max(start, end))
            return [self[i] for i in range(start, end, stride)]
        row = operator.index(index)
        row += len(self) if row < 0 else 0
        if not 0 <= row < len(self):
            raise IndexError(f"{self.name} has {len(self)} rows")
        return self._rows(row, row + 1)[0]

    def __iter__(self) -> Iterator[Row]:
        for start in range(0, len(self), _ROWS_AT_ONCE):
            yield from self._rows(start, min(start + _ROWS_AT_ONCE, len(self)))

    def __repr__(self) -> str:
        return f"<gpuwhy table {self.name}: {len(self)} rows, {', '.join(self.columns)}>"

    def __arrow_c_schema__(self) -> object:
        return self.__arrow_c_array__()[0]

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        from gpuwhy import _native

        schema, schema_capsule = _native.capsule("schema")
        array, array_capsule = _native.capsule("array")
        with self._handle as pointer:
            _native.checked(_native.library.gpuwhy_table, pointer, self.name.encode(), schema, array)
        return schema_capsule, array_capsule

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        from gpuwhy import _native

        stream, capsule = _native.capsule("stream")
        with self._handle as pointer:
            _native.checked(_native.library.gpuwhy_table_stream, pointer, self.name.encode(), stream)
        return capsule
