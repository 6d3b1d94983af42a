#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test that files which gpuwhy did not write are never replaced in an output folder, and that its own are, also after a write that was
cut short at any file."""
import pathlib
import subprocess
import sys
import tempfile

import testing
from recording import make_recording

NOTES = "Notes of a user.\n"
LIST = ".gpuwhy.files"


def run(program, *words, cwd):
    return subprocess.run([program, *words], cwd=cwd, capture_output=True, text=True)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def refused(program, words, cwd, name):
    before = contents(cwd / "out")
    result = run(program, *words, cwd=cwd)
    assert result.returncode == 2 and f"{name} would be replaced" in result.stderr and "hint: " in result.stderr, (name, result)
    assert contents(cwd / "out") == before, f"{name}: something was written"


def check(program, words, folder):
    """Each file of a first run in turn: as somebody else's, changed by somebody, and as the only one that was written."""
    out = folder / "out"
    assert run(program, *words, cwd=folder).returncode == 0
    names = sorted(path.name for path in out.iterdir() if not path.name.startswith("."))
    whole = contents(out)
    for _ in range(2):
        again = run(program, *words, cwd=folder)
        assert again.returncode == 0, again
    for name in names:
        (out / name).write_text(NOTES)  # in the place of ours
        refused(program, words, folder, name)
        (out / name).unlink()
        assert run(program, *words, cwd=folder).returncode == 0, f"{name} was removed, and that is all right"
    heading = (out / LIST).read_text().splitlines()[0]
    for number in range(len(names) + 1):  # as if the first run had been killed
        for path in out.iterdir():
            path.unlink()
        (out / LIST).write_text("\n".join([heading, *(f"-1 {name}" for name in names)]) + "\n")
        for name in names[:number]:
            (out / name).write_bytes(whole[name])
        assert run(program, *words, cwd=folder).returncode == 0, f"after {number} files"
    for name in names:
        for path in out.iterdir():
            path.unlink()
        (out / name).write_text(NOTES)
        refused(program, words, folder, name)
        (out / name).unlink()
        (out / name).symlink_to(folder / "absent")
        refused_link = run(program, *words, cwd=folder)
        assert refused_link.returncode == 2 and (out / name).is_symlink(), (name, refused_link)
    (out / name).unlink()
    (out / "notes.md").write_text(NOTES)  # a name that is not one of ours is in nobody's way
    (out / LIST).write_text("12 notes.md\n")  # a user's
    assert run(program, *words, cwd=folder).returncode == 0 and (out / "notes.md").read_text() == NOTES
    return len(names)


def main():
    program = testing.arguments("program").program
    with tempfile.TemporaryDirectory(prefix="gpuwhy-out-") as scratch:
        num_checked = 0
        for number, words in enumerate((["analyze", "run.sqlite", "--out", "out"], ["analyze", "run.sqlite", "--out", "out", "--with", "trace"],
                                        ["export", "run.sqlite", "--format", "parquet", "--out", "out"])):
            folder = pathlib.Path(scratch) / str(number)
            folder.mkdir()
            make_recording(folder / "run.sqlite", "analyze-llm")
            num_checked += check(program, words, folder)
    print(f"{num_checked} names: what gpuwhy did not write stays")
    return 0


if __name__ == "__main__":
    sys.exit(main())
