#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernel time by NVTX range against nsys' own nvtxkernsum, on every recording with push/pop ranges and kernels: equal,
to the nanosecond, range by range."""
import collections
import csv
import io
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing


def tables(connection):
    return {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}


def by_nsys(path):
    totals = collections.Counter()
    with tempfile.TemporaryDirectory() as directory:
        copy = pathlib.Path(directory) / "copy.sqlite"
        shutil.copy(path, copy)
        copy.chmod(0o644)
        printed = subprocess.run(["nsys", "stats", "--report", "nvtxkernsum", "--format", "csv", "--output", "-",
                                  str(copy)], capture_output=True, text=True, timeout=300).stdout
    start = printed.find("NVTX Range,")
    assert start >= 0, (path.name, printed[:300])
    for row in csv.DictReader(io.StringIO(printed[start:])):
        if row["NVTX Range"] not in ("", "None"):  # kernels in no range have a row too
            # gpuwhy sums the calls of an operator, which PyTorch numbers.
            totals[re.sub(r", (seq|op_id|sizes|input_op_ids) = .*|, stashed seq.*", "", row["NVTX Range"])] += int(row["Total Time (ns)"])
    return totals


def by_gpuwhy(program, path):
    printed = subprocess.run([program, "table", "ranges", str(path), "--format", "csv"], capture_output=True,
                             text=True, check=True, timeout=120).stdout
    totals = collections.Counter()
    for row in csv.DictReader(io.StringIO(printed)):
        totals[row["range"]] += int(row["kernel_ns"])
    return totals


def main():
    arguments = testing.arguments("program", "corpus")
    if not arguments.corpus.exists() or not shutil.which("nsys"):
        testing.skip("needs the corpus and nsys")
    compared = 0
    for path in sorted((arguments.corpus / "nsys_sqlite").glob("*.sqlite")):
        connection = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
        if not {"NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"} <= tables(connection):
            continue
        ours, theirs = by_gpuwhy(arguments.program, path), by_nsys(path)
        differing = [name for name in set(ours) | set(theirs) if ours[name] != theirs[name]]
        assert not differing, (path.name, [(name, ours[name], theirs[name]) for name in differing[:5]])
        compared += 1
        print(f"{path.name}: {len(ours)} ranges agree")
    assert compared >= 8, compared
    return 0


if __name__ == "__main__":
    sys.exit(main())
