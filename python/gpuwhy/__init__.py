# SPDX-License-Identifier: Apache-2.0
"""gpuwhy: where the GPU time of an LLM workload goes.

    import gpuwhy
    p = gpuwhy.open("run.sqlite", model="llama_3_1_8b")
    print(p.verdict)
    polars.DataFrame(p.kernels)

docs/python.md has more. What reads recordings is imported at its first use, so that a program with marks starts as fast as before.
"""

from __future__ import annotations

from gpuwhy._error import Error
from gpuwhy._marks import Mark, mark

TYPE_CHECKING = False  # typing alone would take half of the import
if TYPE_CHECKING:
    from gpuwhy._profile import Comparison, Profile, compare, open  # noqa: A004
    from gpuwhy._rows import Finding, Kernel, Launch, LayerPart, Ledger, Request, Stage, Step
    from gpuwhy._table import Table

    __version__: str

__all__ = [
    "Comparison",
    "Error",
    "Finding",
    "Kernel",
    "Launch",
    "LayerPart",
    "Ledger",
    "Mark",
    "Profile",
    "Request",
    "Stage",
    "Step",
    "Table",
    "__version__",
    "compare",
    "mark",
    "open",
]


def __getattr__(name: str) -> object:
    value: object
    if name == "__version__":  # of the library: it is the same number, and has one home
        from gpuwhy._native import library

        value = library.gpuwhy_version().decode()
    elif name in __all__:
        from gpuwhy import _profile, _rows, _table

        value = next(vars(home)[name] for home in (_profile, _rows, _table) if name in vars(home))
    else:
        raise AttributeError(f"module 'gpuwhy' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
