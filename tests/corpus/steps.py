#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Steps of every recording and golden case: none is counted twice, no printed time per token is below the GPU work of
its step, no printed share is above 100 %."""
import collections
import gzip
import json
import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing
from laws import broken_laws
from recording import GOLDEN, make_sqlite

# What counts as a step, by the source that the program names. SGLang can mark its steps in two ways, one inside the other.
STEPS = {"step markers of vLLM": re.compile(r"execute_.*context_\d+\(.*_generation_\d+\(|capture_\d+_"),
         "step markers of SGLang": re.compile(r"step\[[A-Z_0-9]+ "),
         "step markers of SGLang, in vLLM's form": re.compile(r"execute_.*context_\d+\(.*_generation_\d+\("),
         "step markers of PyTorch's profiler": re.compile(r"ProfilerStep#\d+$")}
UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


def ranges_of(path):
    """(text, pid) of each range, by a reader that shares nothing with the program's."""
    if path.suffix != ".sqlite":
        data = path.read_bytes()
        document = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
        events = document if isinstance(document, list) else document["traceEvents"]
        return [(event["name"], event["pid"]) for event in events
                # In 2021 the profiler's own steps were operators.
                if event.get("ph") == "X" and (event.get("cat") == "user_annotation" or
                                               event.get("cat") == "Operator" and event["name"].startswith("ProfilerStep#"))]
    connection = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    columns = {row[1] for row in connection.execute("PRAGMA table_info(NVTX_EVENTS)")}
    if not columns:
        return []
    text = "coalesce(text, (SELECT value FROM StringIds WHERE id = textId))" if "textId" in columns else "text"
    return connection.execute(f"SELECT {text}, globalTid >> 24 & 0xffffff FROM NVTX_EVENTS WHERE eventType IN (59, 60)")


def check_counts(path, metrics):
    """Marks of the first rank of a group count, those of the others repeat them. Returns the number of marks."""
    step = STEPS.get(metrics["capture"]["stage_source"])
    if step is None or any(stage["stage"] == "graph_capture" for stage in metrics["stages"]):
        return 0
    marks = collections.Counter(pid for text, pid in ranges_of(path) if step.match(text or ""))
    counted = sum(stage["instances"] for stage in metrics["stages"])
    expected = sum(marks[group["pids"][0]] for group in metrics["rank_groups"])
    assert counted == expected, (path.name, counted, marks, metrics["rank_groups"])
    return expected


def check_time_per_token(path, metrics, printed):
    """In metrics.json and as printed. Returns whether there is one."""
    work = {row["stage"]: row["gpu_work_median_ns"] for row in metrics["steps"]}
    least = work.get("decode_step") or work.get("decode") or 0
    tpot = metrics["aggregates"]["tpot"]
    if not tpot["n"]:
        assert tpot["reason"], path.name
        return False
    if "over its tokens" in tpot["basis"]:
        return True  # a loop of many steps, marked as one
    assert tpot["p50_ns"] >= least, (path.name, tpot, least)
    for value, unit in re.findall(r"time per output token, (?:median|p99) +([\d.]+) (\w+)", printed):
        assert float(value) * UNITS[unit] >= least * 0.99, (path.name, value, unit, least)
    return True


def check(program, path, directory):
    def run(*options):
        result = subprocess.run([program, *options], capture_output=True, text=True, timeout=300)
        assert result.returncode == 0, (path.name, result.stderr)
        return result.stdout

    printed = run("analyze", path, "--out", directory)
    file = directory / "metrics.json"
    metrics = json.loads(file.read_text())
    assert broken_laws(metrics) == [], (path.name, broken_laws(metrics))
    printed += run("report", file, "--section", "aggregates")
    for share in re.findall(r"([\d.]+) ?%", printed):
        assert float(share) <= 100, (path.name, share)
    if any(finding["id"] == "impossible_rows" for finding in metrics["findings"]):
        return 0, False  # planted: its times cannot be right, and it says so
    return check_counts(path, metrics), check_time_per_token(path, metrics, printed)


def main():
    arguments = testing.arguments("program", "corpus")
    files = testing.needed([path for folder in ("nsys_sqlite", "kineto") for path in sorted((arguments.corpus / folder).glob("*"))])
    with tempfile.TemporaryDirectory() as directory:
        for sql in sorted(GOLDEN.glob("*/*.sqlite.sql")):
            if (sql.parent / "expected.code").exists():
                continue  # not a recording
            files.append(pathlib.Path(directory) / f"{sql.parent.name}-{sql.name.removesuffix('.sql')}")
            make_sqlite(sql, files[-1])
        files += sorted(path for path in GOLDEN.glob("*/*.json") if '"traceEvents"' in path.read_text())
        results = [check(arguments.program, path, pathlib.Path(directory) / "report") for path in files]
    num_marks, num_timed = sum(marks for marks, _ in results), sum(is_timed for _, is_timed in results)
    assert num_marks >= 7 and num_timed >= 3, (num_marks, num_timed)
    print(f"{len(files)} recordings: {num_marks} marks of engines count once, {num_timed} times per token cover their "
          "GPU work")
    return 0


if __name__ == "__main__":
    sys.exit(main())
