#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernel totals of every recording against two oracles: plain SQL, and nsys' own kernel summary where nsys is installed.

Also holds what must be conserved: ledgers sum to their windows, stages and `outside` to all kernel time, and threads
make no difference.
"""
import collections
import csv
import io
import json
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing
from laws import broken_laws

KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"


def run(program, *arguments):
    result = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, (arguments, result.stderr)
    return result.stdout


def connect(path):
    return sqlite3.connect(f"file:{path}?immutable=1", uri=True)


def by_sql(path):
    """name -> (total, calls, min, max)"""
    connection = connect(path)
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (KERNEL,)).fetchone():
        return {}
    rows = connection.execute(f"""SELECT s.value, sum(k.end - k.start), count(*), min(k.end - k.start),
        max(k.end - k.start) FROM {KERNEL} k JOIN StringIds s ON s.id = k.demangledName GROUP BY s.value""")
    return {name: tuple(rest) for name, *rest in rows}


def by_nsys(path):
    """The same from nsys stats, which splits by grid and block."""
    with tempfile.TemporaryDirectory() as directory:
        copy = pathlib.Path(directory) / "copy.sqlite"
        shutil.copy(path, copy)
        copy.chmod(0o644)
        printed = subprocess.run(["nsys", "stats", "--report", "gpukernsum", "--format", "csv", "--output", "-",
                                  str(copy)], capture_output=True, text=True, timeout=300).stdout
    start = printed.find("Time (%)")
    if start < 0:
        return None
    totals = collections.defaultdict(lambda: [0, 0, 1 << 62, 0])
    for row in csv.DictReader(io.StringIO(printed[start:])):
        total = totals[row["Name"]]
        total[0] += int(row["Total Time (ns)"])
        total[1] += int(row["Instances"])
        total[2] = min(total[2], int(float(row["Min (ns)"])))
        total[3] = max(total[3], int(float(row["Max (ns)"])))
    return {name: tuple(values) for name, values in totals.items()}


def by_gpuwhy(program, path):
    totals = collections.defaultdict(lambda: [0, 0, 1 << 62, 0])
    for row in csv.DictReader(io.StringIO(run(program, "table", "kernels", path, "--format", "csv"))):
        if row["family"] == "cuda_graph (opaque)":
            continue
        total = totals[row["kernel_name"]]
        total[0] += int(row["total_ns"])
        total[1] += int(row["calls"])
        total[2] = min(total[2], int(row["min_ns"]))
        total[3] = max(total[3], int(row["max_ns"]))
    return {name: tuple(values) for name, values in totals.items()}


def check_shapes(metrics, path):
    """Launches by grid and block against plain SQL, of kernels whose shapes are all listed. Returns how many those are."""
    ours = collections.defaultdict(lambda: [0, 0])
    left_out = set()
    for row in metrics["kernels"]:
        if row["num_shapes"] > len(row["by_shape"]):  # one shape has no list; more than eight are cut
            left_out.add(row["kernel_name"])
        for shape in row["by_shape"]:
            total = ours[row["kernel_name"], shape["shape"]]
            total[0] += shape["total_ns"]
            total[1] += shape["calls"]
    names = {name for name, _ in ours} - left_out
    sql = connect(path).execute(f"""SELECT s.value, gridX || 'x' || gridY || 'x' || gridZ || '/' || blockX || 'x' || blockY || 'x' ||
        blockZ, sum(k.end - k.start), count(*) FROM {KERNEL} k JOIN StringIds s ON s.id = k.demangledName GROUP BY 1, 2""")
    theirs = {(name, shape): (total, calls) for name, shape, total, calls in sql if name in names}
    assert {key: tuple(total) for key, total in ours.items() if key[0] in names} == theirs, path.name
    return len(names)


def check_conservation(program, path):
    with tempfile.TemporaryDirectory() as directory:
        texts = []
        for threads in (1, 4):
            run(program, "analyze", path, "--threads", threads, "--out", directory)
            texts.append((pathlib.Path(directory) / "metrics.json").read_text())
        assert texts[0] == texts[1], f"{path.name}: threads change the result"
    metrics = json.loads(texts[0])
    assert broken_laws(metrics) == [], (path.name, broken_laws(metrics))
    short_names = collections.defaultdict(set)
    for kernel in metrics["kernels"]:
        short_names[kernel["short_name"]].add(kernel["kernel_name"])
    assert all(len(names) == 1 for names in short_names.values()), path.name
    return metrics


def main():
    arguments = testing.arguments("program", "corpus")
    files = testing.needed(sorted((arguments.corpus / "nsys_sqlite").glob("*.sqlite")))
    has_nsys = shutil.which("nsys") and "2022.4" in subprocess.run(["nsys", "--version"], capture_output=True,
                                                                    text=True).stdout
    asked = 0
    shaped = 0
    with tempfile.TemporaryDirectory() as directory:
        # An independent generator, where it is there.
        maker = arguments.corpus.parent / "tools/make_nsys_sqlite.py"
        if maker.exists():
            made = pathlib.Path(directory) / "made.sqlite"
            subprocess.run([sys.executable, maker, made, "30000"], check=True, stdout=subprocess.DEVNULL)
            assert by_gpuwhy(arguments.program, made) == by_sql(made)
            stages = {stage["stage"]: stage for stage in check_conservation(arguments.program, made)["stages"]}
            assert set(stages) == {"prefill", "decode", "decode_step"}
            assert stages["decode"]["kernel_ns"] == stages["decode_step"]["kernel_ns"] > 0
    for path in files:
        ours = by_gpuwhy(arguments.program, path)
        sql = by_sql(path)
        assert ours == sql, (path.name, set(ours.items()) ^ set(sql.items()))
        if has_nsys and sql:
            theirs = by_nsys(path)
            if theirs is not None:
                assert ours == theirs, (path.name, set(ours.items()) ^ set(theirs.items()))
                asked += 1
        metrics = check_conservation(arguments.program, path)
        shaped += check_shapes(metrics, path) if sql else 0
    print(f"{len(files)} recordings equal plain SQL, {asked} of them nsys stats too; {shaped} kernels by grid and block")
    assert shaped > 50, shaped
    assert not has_nsys or asked >= 15, asked
    return 0


if __name__ == "__main__":
    sys.exit(main())
