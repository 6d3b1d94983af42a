# SPDX-License-Identifier: Apache-2.0
"""Recordings that were read, and comparisons of them."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

from gpuwhy._rows import Finding, Kernel, Launch, LayerPart, Ledger, Request, Stage, Step
from gpuwhy._table import Table

if TYPE_CHECKING:
    from types import TracebackType

Path = Union[str, "os.PathLike[str]"]
_ROW_TYPES: dict[str, type[Any]] = {
    "findings": Finding,
    "stages": Stage,
    "steps": Step,
    "ledger": Ledger,
    "kernels": Kernel,
    "launches": Launch,
    "layers": LayerPart,
    "requests": Request,
}


class Handle:
    """The library's profile. Tables hold it too, and it is closed with the last of them.

    `with handle as pointer` keeps it open meanwhile: another thread may close it while the library works without Python's lock.
    """

    def __init__(self, paths: Sequence[bytes], options: Sequence[bytes]) -> None:
        from gpuwhy import _native

        self.library = _native.library
        self._lock = threading.Lock()
        self._num_users = 0
        self._is_closed = False
        self._pointer: int | None = _native.checked(
            _native.library.gpuwhy_open, _native.text_array(paths), len(paths), _native.text_array(options), len(options)
        )

    def __enter__(self) -> int:
        with self._lock:
            if self._is_closed or self._pointer is None:
                raise ValueError("the profile is closed")
            self._num_users += 1
            return self._pointer

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._num_users -= 1
            self._end_if_unused()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            self._end_if_unused()

    def _end_if_unused(self) -> None:
        if self._is_closed and self._num_users == 0 and self._pointer is not None:
            pointer, self._pointer = self._pointer, None
            self.library.gpuwhy_close(pointer)

    def __del__(self) -> None:
        if getattr(self, "_pointer", None) is not None:
            self.library.gpuwhy_close(self._pointer)


class Profile:
    """A recording, read and analyzed: what `gpuwhy analyze` prints, as objects."""

    def __init__(self, paths: Sequence[str], options: Sequence[str]) -> None:
        self.paths = tuple(paths)
        self._handle = Handle([os.fsencode(path) for path in paths], [os.fsencode(option) for option in options])
        self._metrics: dict[str, Any] | None = None
        self._tables: dict[str, Table[Any]] = {}

    @property
    def verdict(self) -> str:
        """One sentence: the largest waste, or why nothing can be said."""
        with self._handle as pointer:
            return str(self._handle.library.gpuwhy_verdict(pointer).decode(errors="replace"))

    @property
    def metrics(self) -> dict[str, Any]:
        """metrics.json: every number. docs/metrics.md explains its keys."""
        if self._metrics is None:
            import json

            self._metrics = json.loads(self.metrics_json())
        return self._metrics

    def metrics_json(self) -> str:
        """The same as text, byte for byte what `gpuwhy analyze --json` prints."""
        from gpuwhy import _native

        with self._handle as pointer:
            return _native.checked_text(_native.library.gpuwhy_metrics_json, pointer)

    def table(self, name: str) -> Table[Any]:
        """A table by its name. Rows are dicts where there is no type for them."""
        if name not in self._tables:
            self._tables[name] = Table(self._handle, name, _ROW_TYPES.get(name))
        return self._tables[name]

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of all tables."""
        library = self._handle.library
        names: list[str] = []
        while (name := library.gpuwhy_table_name(len(names))) is not None:
            names.append(name.decode())
        return tuple(names)

    @property
    def findings(self) -> Table[Finding]:
        """What to fix, most urgent first."""
        return self.table("findings")

    @property
    def stages(self) -> Table[Stage]:
        """The stages of the program."""
        return self.table("stages")

    @property
    def steps(self) -> Table[Step]:
        """Every run through a stage."""
        return self.table("steps")

    @property
    def ledger(self) -> Table[Ledger]:
        """Where the time went, by stage and GPU."""
        return self.table("ledger")

    @property
    def kernels(self) -> Table[Kernel]:
        """Kernels by GPU and stage, by total time."""
        return self.table("kernels")

    @property
    def launches(self) -> Table[Launch]:
        """Every kernel that ran. Reading it raises Error for a summary of kernels."""
        return self.table("launches")

    @property
    def layers(self) -> Table[LayerPart]:
        """Kernels by their place in a layer. Reading it raises Error where no layers were found."""
        return self.table("layers")

    @property
    def requests(self) -> Table[Request]:
        """Every request, by time sent. Reading it raises Error where no file of them was given."""
        return self.table("requests")

    def html(self) -> str:
        """report.html: one page that needs no network. The recording is read again, for its timeline."""
        from gpuwhy import _native

        with self._handle as pointer:
            return _native.checked_text(_native.library.gpuwhy_report_html, pointer)

    def _repr_html_(self) -> str:
        return _frame(self.html())

    def __repr__(self) -> str:
        return f"<gpuwhy profile of {', '.join(self.paths)}: {self.verdict}>"

    def close(self) -> None:
        """Lets go of the recording at once. Data frames made of it stay."""
        self._handle.close()

    def __enter__(self) -> Profile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _frame(page: str) -> str:
    """A page inside another: its styles and scripts stay its own."""
    from html import escape

    return f'<iframe sandbox="allow-scripts" style="width:100%;height:640px;border:0" srcdoc="{escape(page, quote=True)}"></iframe>'


def _paths_of(path: Path | Sequence[Path]) -> list[str]:
    if isinstance(path, (str, os.PathLike)):
        return [os.fspath(path)]
    return [os.fspath(one) for one in path]


def open(  # noqa: A001
    path: Path | Sequence[Path],
    *,
    model: str | None = None,
    gpu: str | None = None,
    requests: Path | None = None,
    slo: str | None = None,
    ncu: Path | Sequence[Path] = (),
    batch: int | None = None,
    prompt_tokens: int | None = None,
    new_tokens: int | None = None,
    context: int | None = None,
    image: str | None = None,
    tp: int | None = None,
    pp: int | None = None,
    dp: int | None = None,
    device: int | None = None,
    pid: int | None = None,
    start: str | None = None,
    end: str | None = None,
    steps: str | None = None,
    trim: bool = False,
    marks: Mapping[str, str] | None = None,
    step_names: Sequence[str] = (),
    rules: Path | None = None,
    annotations: Path | None = None,
    capture_traces: Sequence[Path] = (),
    threads: int | None = None,
    memory_limit: str | int | None = None,
) -> Profile:
    """Reads and analyzes a recording, as `gpuwhy analyze` does; several paths are the ranks of one job.

    The options are those of the command. `gpu` is --gpu-name, the GPU whose peaks are used; `device` is --gpu, the only GPU to
    look at; `start` and `end` are --from and --to; `marks` maps a stage to the name of its ranges. Raises Error.
    """
    given: dict[str, Any] = {
        "model": model,
        "gpu_name": gpu,
        "requests": requests,
        "slo": slo,
        "batch": batch,
        "prompt_tokens": prompt_tokens,
        "new_tokens": new_tokens,
        "context": context,
        "image": image,
        "tp": tp,
        "pp": pp,
        "dp": dp,
        "gpu": device,
        "pid": pid,
        "from": start,
        "to": end,
        "steps": steps,
        "trim": "true" if trim else None,
        "rules": rules,
        "annotations": annotations,
        "threads": threads,
        "memory_limit": memory_limit,
    }
    options = [f"{name}={_text(value)}" for name, value in given.items() if value is not None]
    options += [f"ncu={file}" for file in _paths_of(ncu)]
    options += [f"mark={stage}={name}" for stage, name in (marks or {}).items()]
    options += [f"step={name}" for name in step_names]
    options += [f"capture_trace={_text(file)}" for file in capture_traces]
    return Profile(_paths_of(path), options)


def _text(value: Any) -> str:
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


class Comparison:
    """What changed between two sides, and whether that is more than noise."""

    def __init__(self, metrics: dict[str, Any], page: str) -> None:
        self.metrics = metrics
        self._page = page

    @property
    def verdict(self) -> str:
        """PASS, REGRESS, INCONCLUSIVE or INVALID, as `gpuwhy compare` says it."""
        return str(self.metrics["verdict"])

    @property
    def sentence(self) -> str:
        return str(self.metrics["sentence"])

    def html(self) -> str:
        """The page of the comparison."""
        return self._page

    def _repr_html_(self) -> str:
        return _frame(self._page)

    def __repr__(self) -> str:
        return f"<gpuwhy comparison: {self.verdict}: {self.sentence}>"


Side = Union[Path, Profile, Sequence[Union[Path, Profile]]]


def compare(base: Side, candidate: Side, *, effect: float | None = None) -> Comparison:
    """Compares two recordings, or several of each side: profiles, or what `gpuwhy compare` reads.

    `effect` is the smallest change that matters, in percent. Raises Error.
    """
    import contextlib
    import json

    from gpuwhy import _native

    with contextlib.ExitStack() as held:
        sides: list[Any] = []
        for side in (base, candidate):
            members = [side] if isinstance(side, (str, os.PathLike, Profile)) else list(side)
            runs = (_native.Run * len(members))()
            for run, member in zip(runs, members):
                if isinstance(member, Profile):
                    run.profile = held.enter_context(member._handle)
                else:
                    run.path = os.fsencode(member)
            sides += [runs, len(members)]
        options = [] if effect is None else [f"effect={effect}".encode()]
        given = (*sides, _native.text_array(options), len(options))
        text, page = (_native.checked_text(_native.library.gpuwhy_compare, *given, form) for form in (b"json", b"html"))
    return Comparison(json.loads(text), page)
