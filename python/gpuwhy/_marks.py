# SPDX-License-Identifier: Apache-2.0
"""Marks for programs: NVTX ranges that name the stages of an LLM program.

The ranges are those of include/gpuwhy/nvtx.h. Without a profiler, which names its library in NVTX_INJECTION64_PATH, a mark does
nothing and loads nothing.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Callable

# In the order of libgpuwhy_marks.so.
NAMES = ("request", "prefill", "decode_all", "decode_step", "verify", "warmup")
_NUMBERS = {name: number for number, name in enumerate(NAMES)}


class _Tool:
    """The functions of libgpuwhy_marks.so, or None where nobody listens."""

    def __init__(self) -> None:
        self.is_asked = False
        self.push: Callable[[int, int], None] | None = None
        self.pop: Callable[[], None] | None = None

    def ask(self) -> None:
        self.is_asked = True
        if not os.environ.get("NVTX_INJECTION64_PATH"):
            return
        import ctypes

        library = os.environ.get("GPUWHY_LIBRARY")
        folder = os.path.dirname(library or os.path.abspath(__file__))
        try:
            # PyDLL keeps Python's lock: letting go of it takes longer than the call.
            loaded = ctypes.PyDLL(os.path.join(folder, "libgpuwhy_marks.so"))
            loaded.gpuwhy_marks_push.argtypes = (ctypes.c_int, ctypes.c_int64)
            loaded.gpuwhy_marks_push.restype = None
            loaded.gpuwhy_marks_pop.restype = None
            if loaded.gpuwhy_marks_open():
                self.push, self.pop = loaded.gpuwhy_marks_push, loaded.gpuwhy_marks_pop
        except (OSError, AttributeError):
            pass  # a program must run as it does without marks


_tool = _Tool()


class Mark:
    """A range from __enter__ to __exit__, on one thread."""

    __slots__ = ("_has_begun", "_number", "_tokens")

    def __init__(self, number: int, tokens: int) -> None:
        self._number = number
        self._tokens = tokens
        self._has_begun = False

    def __enter__(self) -> Mark:
        if _tool.push is not None:
            _tool.push(self._number, self._tokens)
            self._has_begun = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._has_begun and _tool.pop is not None:
            self._has_begun = False
            _tool.pop()


class _NoMark(Mark):
    """What a mark is while nobody listens: one object for all."""

    __slots__ = ()

    def __enter__(self) -> Mark:
        return self

    def __exit__(self, *error: object) -> None:
        pass


_NO_MARK = _NoMark(0, -1)


def mark(name: str, tokens: int | None = None) -> Mark:
    """Marks a stage of this program for gpuwhy, nsys and ncu.

    `name` is request, prefill, decode_all, decode_step, verify or warmup. `tokens` are those that a prefill reads or a step makes.

        with gpuwhy.mark("prefill", tokens=len(prompt)):
            model(prompt)

    GPU work belongs to a mark when the call that launches it is made inside, on the same thread.
    """
    number = _NUMBERS.get(name)
    if number is None:
        raise ValueError(f"there is no mark {name!r}: {', '.join(NAMES)}")
    if not _tool.is_asked:
        _tool.ask()
    if _tool.push is None:
        return _NO_MARK
    return Mark(number, -1 if tokens is None else int(tokens))
