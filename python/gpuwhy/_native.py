# SPDX-License-Identifier: Apache-2.0
"""libgpuwhy.so through ctypes: its functions, Arrow's structs, and the capsules that carry them.

Imported at the first use, since ctypes takes as long to import as all the rest. ctypes lets go of Python's lock during a call.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_void_p
from typing import Any, Callable

from gpuwhy._error import KINDS, Error

C_VERSION = 1


class ArrowSchema(ctypes.Structure):
    pass


class ArrowArray(ctypes.Structure):
    pass


# As published with the Arrow C data interface.
ArrowSchema._fields_ = [
    ("format", c_char_p),
    ("name", c_char_p),
    ("metadata", c_void_p),
    ("flags", c_int64),
    ("n_children", c_int64),
    ("children", POINTER(POINTER(ArrowSchema))),
    ("dictionary", POINTER(ArrowSchema)),
    ("release", ctypes.CFUNCTYPE(None, POINTER(ArrowSchema))),
    ("private_data", c_void_p),
]
ArrowArray._fields_ = [
    ("length", c_int64),
    ("null_count", c_int64),
    ("offset", c_int64),
    ("n_buffers", c_int64),
    ("n_children", c_int64),
    ("buffers", POINTER(c_void_p)),
    ("children", POINTER(POINTER(ArrowArray))),
    ("dictionary", POINTER(ArrowArray)),
    ("release", ctypes.CFUNCTYPE(None, POINTER(ArrowArray))),
    ("private_data", c_void_p),
]


class Run(ctypes.Structure):
    """A side of a comparison: a profile, or a path."""

    _fields_ = [("profile", c_void_p), ("path", c_char_p)]


def _folder() -> str:
    return os.path.dirname(os.path.abspath(__file__))


def library_path() -> str:
    """libgpuwhy.so of this package, or the one that GPUWHY_LIBRARY names."""
    return os.environ.get("GPUWHY_LIBRARY") or os.path.join(_folder(), "libgpuwhy.so")


def _load() -> ctypes.CDLL:
    path = library_path()
    try:
        loaded = ctypes.CDLL(path)
        number = loaded.gpuwhy_c_version()
    except (OSError, AttributeError) as error:
        raise Error(
            f"libgpuwhy.so cannot be loaded: {error}",
            "install the package again, or name a library of the same version in GPUWHY_LIBRARY",
            "environment",
        ) from None
    if number < C_VERSION:
        raise Error(f"{path} is older than this package", kind="environment")
    errors = POINTER(c_void_p)
    texts = POINTER(c_char_p)
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "gpuwhy_version": (c_char_p, []),
        "gpuwhy_error_kind": (c_int, [c_void_p]),
        "gpuwhy_error_message": (c_char_p, [c_void_p]),
        "gpuwhy_error_hint": (c_char_p, [c_void_p]),
        "gpuwhy_error_free": (None, [c_void_p]),
        "gpuwhy_open": (c_void_p, [texts, c_size_t, texts, c_size_t, errors]),
        "gpuwhy_close": (None, [c_void_p]),
        "gpuwhy_free": (None, [c_void_p]),
        "gpuwhy_metrics_json": (c_void_p, [c_void_p, errors]),
        "gpuwhy_report_html": (c_void_p, [c_void_p, errors]),
        "gpuwhy_verdict": (c_char_p, [c_void_p]),
        "gpuwhy_table_name": (c_char_p, [c_size_t]),
        "gpuwhy_table": (c_int, [c_void_p, c_char_p, c_void_p, c_void_p, errors]),
        "gpuwhy_table_stream": (c_int, [c_void_p, c_char_p, c_void_p, errors]),
        "gpuwhy_compare": (
            c_void_p,
            [POINTER(Run), c_size_t, POINTER(Run), c_size_t, texts, c_size_t, c_char_p, errors],
        ),
        "gpuwhy_python": (None, [c_void_p]),
        "gpuwhy_new_schema": (c_void_p, []),
        "gpuwhy_new_array": (c_void_p, []),
        "gpuwhy_new_stream": (c_void_p, []),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(loaded, name)
        function.restype = result
        function.argtypes = arguments
    loaded.gpuwhy_python(ctypes.cast(ctypes.pythonapi.PyCapsule_GetPointer, c_void_p))
    return loaded


library = _load()

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [c_void_p, c_char_p, c_void_p]
# A capsule keeps a pointer to its name.
_NAMES = {"schema": b"arrow_schema", "array": b"arrow_array", "stream": b"arrow_array_stream"}
_ENDS = {kind: ctypes.cast(getattr(library, f"gpuwhy_end_{kind}"), c_void_p) for kind in _NAMES}


def capsule(kind: str) -> tuple[int, object]:
    """An empty struct, and the capsule that owns it."""
    memory = getattr(library, f"gpuwhy_new_{kind}")()
    if not memory:
        raise MemoryError
    return memory, _new_capsule(memory, _NAMES[kind], _ENDS[kind])


def text_array(texts: Sequence[bytes]) -> Any:
    return (c_char_p * len(texts))(*texts)


def raise_error(error: c_void_p) -> None:
    message = library.gpuwhy_error_message(error)
    hint = library.gpuwhy_error_hint(error)
    kind = library.gpuwhy_error_kind(error)
    library.gpuwhy_error_free(error)
    raise Error(message.decode(errors="replace"), hint.decode(errors="replace"), KINDS.get(kind, "failure"))


def checked(function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a function whose last parameter is for an error."""
    error = c_void_p()
    result = function(*arguments, ctypes.byref(error))
    if error.value is not None:
        raise_error(error)
    return result


def checked_text(function: Callable[..., Any], *arguments: Any) -> str:
    text = checked(function, *arguments)
    if not text:
        raise MemoryError
    try:
        return ctypes.string_at(text).decode()
    finally:
        library.gpuwhy_free(text)


class Batch:
    """A table that this side reads: the structs, released when it goes."""

    def __init__(self, profile: int, name: bytes) -> None:
        self.schema = ArrowSchema()
        self.array = ArrowArray()
        checked(library.gpuwhy_table, profile, name, ctypes.byref(self.schema), ctypes.byref(self.array))

    def __del__(self) -> None:
        for held in (self.schema, self.array):
            if held.release:
                held.release(ctypes.byref(held))

    @property
    def names(self) -> list[str]:
        return [self.schema.children[i].contents.name.decode() for i in range(self.schema.n_children)]

    def __len__(self) -> int:
        return int(self.array.length)

    def values(self, column: int, start: int, end: int) -> list[Any]:
        return values_of(self.schema.children[column].contents, self.array.children[column].contents, start, end)


_NUMBERS = {b"l": c_int64, b"g": ctypes.c_double, b"i": ctypes.c_int32, b"I": ctypes.c_uint32}


def _present(array: Any, start: int, end: int) -> list[bool] | None:
    if array.null_count == 0 or not array.buffers[0]:
        return None
    return _bits(array.buffers[0], start, end)


def _bits(address: int, start: int, end: int) -> list[bool]:
    data = (ctypes.c_uint8 * ((end + 7) // 8)).from_address(address)
    return [bool(data[row >> 3] >> (row & 7) & 1) for row in range(start, end)]


def _numbers(array: Any, kind: Any, start: int, end: int) -> list[Any]:
    size = ctypes.sizeof(kind)
    return list((kind * (end - start)).from_address(array.buffers[1] + start * size)) if end > start else []


def values_of(schema: Any, array: Any, start: int, end: int) -> list[Any]:
    """Rows of a column as Python values; None where there is none."""
    form = schema.format
    values: list[Any]
    if schema.dictionary:
        numbers = _numbers(array, ctypes.c_int32, start, end)
        words = array.dictionary.contents
        texts = values_of(schema.dictionary.contents, words, 0, words.length)
        values = [texts[number] if number >= 0 else None for number in numbers]
    elif form in _NUMBERS:
        values = _numbers(array, _NUMBERS[form], start, end)
    elif form == b"b":
        values = _bits(array.buffers[1], start, end) if end > start else []
    elif form == b"u":
        offsets = _offsets(array, start, end)
        data = array.buffers[2]
        values = [ctypes.string_at(data + offsets[i], offsets[i + 1] - offsets[i]).decode() for i in range(end - start)]
    elif form == b"+l":
        offsets = _offsets(array, start, end)
        items = values_of(schema.children[0].contents, array.children[0].contents, offsets[0], offsets[-1])
        first = offsets[0]
        values = [tuple(items[offsets[i] - first : offsets[i + 1] - first]) for i in range(end - start)]
    elif form == b"+s":
        names = [schema.children[i].contents.name.decode() for i in range(schema.n_children)]
        columns = [values_of(schema.children[i].contents, array.children[i].contents, start, end) for i in range(schema.n_children)]
        values = [dict(zip(names, row)) for row in zip(*columns)]
    else:
        raise Error(f"a column has the format {form!r}, which this package does not read")
    present = _present(array, start, end)
    if present is not None:
        values = [value if is_there else None for value, is_there in zip(values, present)]
    return values


def _offsets(array: Any, start: int, end: int) -> list[int]:
    return list((ctypes.c_int32 * (end - start + 1)).from_address(array.buffers[1] + 4 * start))
