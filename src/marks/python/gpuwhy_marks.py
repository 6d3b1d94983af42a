# SPDX-License-Identifier: Apache-2.0
"""Import hook, ranges and notes that the modules of `gpuwhy run --mark` share.

A module of marks is a file gpuwhy_mark_NAME.py with TARGET, the module it waits for, and install(target, marks), which is
called once, after TARGET was imported. No error leaves this file: what cannot be marked becomes a note, which gpuwhy run
reads and reports.
"""
import os
import sys

MODULES = {"transformers": "transformers.generation.utils"}
MOST_NOTES = 20
# In the order of libgpuwhy_marks.so.
NAMES = ("request", "prefill", "decode_all", "decode_step", "verify", "warmup")
REQUEST, PREFILL, DECODE_ALL, DECODE_STEP, VERIFY = range(5)

_notes = set()


def note(text, kind="no"):
    """One line, once a process: `ok` for what is marked, `no` for what is not."""
    try:
        line = kind + " " + " ".join(str(text).split())[:300] + "\n"
        path = os.environ.get("GPUWHY_MARK_NOTES")
        if not path or line in _notes or len(_notes) >= MOST_NOTES:
            return
        _notes.add(line)
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, line.encode("utf-8", "replace"))
        finally:
            os.close(file)
    except Exception:
        pass


class Marks:
    """push(name, tokens) and pop() of ranges in the domain LLM; tokens below 0: not known.

    step() is push(DECODE_STEP, n) with the n of this thread's last set_batch(n), in half the time; None where there is none.
    """

    def __init__(self, folder):
        refused = []
        self.step = self.set_batch = None
        for make, what in ((self._library, "libgpuwhy_marks.so"), (self._nvtx_package, "the package nvtx"),
                           (self._torch, "torch.cuda.nvtx, without token counts")):
            try:
                self.push, self.pop = make(folder)
                if refused:
                    note(f"marks are made by {what}, since {'; '.join(refused)}")
                return
            except Exception as error:
                refused.append(f"{what}: {type(error).__name__}: {error}")
        note(f"there is no NVTX to mark with: {'; '.join(refused)}")
        self.push, self.pop = (lambda name, tokens: None), (lambda: None)

    def _library(self, folder):
        import ctypes

        # PyDLL keeps Python's lock: letting go of it would let another thread run in the middle of a step.
        library = ctypes.PyDLL(os.path.join(folder, "libgpuwhy_marks.so"))
        library.gpuwhy_marks_push.argtypes = (ctypes.c_int, ctypes.c_int64)
        library.gpuwhy_marks_push.restype = None
        library.gpuwhy_marks_pop.restype = None
        library.gpuwhy_marks_step.restype = None
        library.gpuwhy_marks_open()
        self.step, self.set_batch = library.gpuwhy_marks_step, library.gpuwhy_marks_set_batch
        return library.gpuwhy_marks_push, library.gpuwhy_marks_pop

    @staticmethod
    def _nvtx_package(_folder):
        import nvtx

        def push(name, tokens):
            nvtx.push_range(NAMES[name], domain="LLM", payload=tokens if tokens >= 0 else None)

        nvtx.push_range("request", domain="LLM")
        nvtx.pop_range(domain="LLM")
        return push, lambda: nvtx.pop_range(domain="LLM")

    @staticmethod
    def _torch(_folder):
        from torch.cuda import nvtx

        nvtx.range_push("gpuwhy")  # raises in a PyTorch without CUDA
        nvtx.range_pop()
        return (lambda name, tokens: nvtx.range_push(NAMES[name])), nvtx.range_pop


class _Loader:
    """A module's own loader, with a call after it. The module sees only its own."""

    def __init__(self, loader, after):
        self._loader, self._after = loader, after

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._after(module)

    def __getattr__(self, name):
        return getattr(self._loader, name)


class _Finder:
    """Waits for modules in sys.meta_path, and leaves when the last was found."""

    def __init__(self, folder, wanted):
        self._folder, self._wanted = folder, wanted  # module waited for -> name of the marks

    def find_spec(self, name, path=None, target=None):
        if name not in self._wanted:
            return None
        marked = self._wanted.pop(name)
        try:
            if not self._wanted:
                sys.meta_path.remove(self)
            for finder in sys.meta_path:
                spec = finder.find_spec(name, path, target) if finder is not self else None
                if spec is not None:
                    if hasattr(spec.loader, "exec_module") and hasattr(spec.loader, "create_module"):
                        spec.loader = _Loader(spec.loader, lambda module: self._install(marked, module))
                    else:
                        note(f"{marked} is not marked: {name} has a loader of an unknown kind")
                    return spec
        except Exception as error:
            note(f"{marked} is not marked: {type(error).__name__}: {error}")
        return None

    def _install(self, marked, module):
        try:
            from importlib.util import module_from_spec, spec_from_file_location

            name = "gpuwhy_mark_" + marked
            spec = spec_from_file_location(name, os.path.join(self._folder, name + ".py"))
            code = module_from_spec(spec)
            spec.loader.exec_module(code)
            code.install(module, Marks(self._folder))
        except Exception as error:
            note(f"{marked} is not marked: {type(error).__name__}: {error}")


def start(folder):
    wanted = {MODULES[name]: name for name in os.environ.get("GPUWHY_MARK", "").split(",") if name in MODULES}
    if wanted:
        sys.meta_path.insert(0, _Finder(folder, wanted))
