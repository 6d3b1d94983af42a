#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpuwhy baseline set, list and show, and a gate that goes by the name: runs with marked stages, runs that do not belong together."""
import json
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

import testing
from recording import make_recording


def main():
    program = testing.arguments("program").program
    with tempfile.TemporaryDirectory() as folder:
        def run(*words, code=0):
            result = subprocess.run([program, *words], capture_output=True, text=True, cwd=folder)
            assert result.returncode == code, (words, result.returncode, result.stdout, result.stderr)
            return result.stdout + result.stderr

        make_recording(f"{folder}/a.sqlite")
        make_recording(f"{folder}/b.sqlite")
        make_recording(f"{folder}/c.sqlite")
        for name, shift in (("b", 1), ("c", 2)):  # files without a difference are one run
            database = sqlite3.connect(f"{folder}/{name}.sqlite")
            database.execute('UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET "end" = "end" - ? WHERE rowid = 1', (shift,))
            database.commit()
            database.close()
        make_recording(f"{folder}/other.sqlite", "analyze-nocuda")
        run("baseline", "set", "main", "a.sqlite", "b.sqlite")
        kept = json.loads((pathlib.Path(folder) / ".gpuwhy/baselines/main.json").read_text())
        assert [row["label"] for row in kept["runs"]] == ["a.sqlite", "b.sqlite"], kept["runs"]
        assert "main" in run("baseline", "list") and "a.sqlite" in run("baseline", "show", "main")
        hostile = pathlib.Path(folder) / ".gpuwhy/baselines/a\x1b[31m.json"
        hostile.write_text(json.dumps(kept))
        listed = run("baseline", "list")
        assert "\x1b" not in listed and "a\\x1b[31m" in listed, listed
        hostile.unlink()
        # Two runs against one prove little, but nearly equal files are never a regression.
        told = run("gate", "c.sqlite", "--baseline", "main", code=4)
        assert "inconclusive" in told and "What changed" in told, told
        assert "cannot be a baseline" in run("baseline", "set", "mixed", "a.sqlite", "other.sqlite", code=7)
        assert not (pathlib.Path(folder) / ".gpuwhy/baselines/mixed.json").exists()
        run("gate", "other.sqlite", "--baseline", "main", code=6)
        assert "plain word" in run("baseline", "set", "../x", "a.sqlite", code=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
