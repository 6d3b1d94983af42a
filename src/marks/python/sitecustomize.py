# SPDX-License-Identifier: Apache-2.0
"""Start of the marks of `gpuwhy run --mark` in a Python process; then the sitecustomize that the process would have had.

Python imports this file because its folder is the first of PYTHONPATH. It leaves sys.path as it would be without it. The
folder stays in PYTHONPATH for child processes.
"""
import os
import sys


def _start(folder):
    try:
        import gpuwhy_marks

        gpuwhy_marks.start(folder)
    except Exception:  # a program must run as if nothing was here
        pass


def _forget(folder):
    sys.path[:] = [entry for entry in sys.path if not entry or os.path.abspath(entry) != folder]


def _load_next():
    """The process's own, as site would: an error in it is site's to report."""
    try:  # what importlib takes them from: already loaded, while importlib.util takes milliseconds
        from _frozen_importlib import module_from_spec
        from _frozen_importlib_external import PathFinder
    except ImportError:
        from importlib.machinery import PathFinder
        from importlib.util import module_from_spec
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


_folder = os.path.dirname(os.path.abspath(__file__))
_start(_folder)
_forget(_folder)
_load_next()
