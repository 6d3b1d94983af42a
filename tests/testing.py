# SPDX-License-Identifier: Apache-2.0
"""What test scripts begin with: their arguments, and what they are skipped without."""
import argparse
import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile

# Paths that tests/CMakeLists.txt gives: to some folders more than a script of them asks for.
PROGRAMS = ("program", "library", "consumer", "make-trace", "make-ranks", "make-history", "workload", "read-ranges", "read-again", "probe",
            "probe-library", "harm", "static-harm", "shim")
FOLDERS = ("source", "build", "corpus", "out", "llama-runner")


def arguments(*names, **more):
    """The values of --NAME, absolute: of PROGRAMS as texts, of FOLDERS as paths; these names must be given. And of options of the
    script's own: False for a flag, a default, None for a text that may be missing."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    for name in (*PROGRAMS, *FOLDERS):
        parser.add_argument(f"--{name}", required=name in names,
                            type=os.path.abspath if name in PROGRAMS else lambda path: pathlib.Path(path).absolute())
    for name, default in more.items():
        how = {"action": "store_true"} if default is False else {"default": default, "type": str if default is None else type(default)}
        parser.add_argument(f"--{name.replace('_', '-')}", **how)
    return parser.parse_args()


def skip(why):
    """Ends the test, visibly: ctest takes 77 for skipped."""
    print(f"skipped: {why}")
    sys.exit(77)


@contextlib.contextmanager
def scratch(**how):
    """A folder that goes away with the test."""
    with tempfile.TemporaryDirectory(**how) as name:
        yield pathlib.Path(name).resolve()


def needed(found):
    """A folder or a list of recordings; skips the test where there are none."""
    there = found.is_dir() if isinstance(found, pathlib.Path) else found
    return found if there else skip("the recordings of GPUWHY_SHARED are not here")


def needs_release(program):
    if "Release" not in subprocess.run([program, "--version"], capture_output=True, text=True).stdout:
        skip("only a release build is held to it")
