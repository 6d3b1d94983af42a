#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recordings with numbers that cannot be right, planted in sound ones of several shapes: data quality names each with its count, and the
verdict says so in place of a figure. A single row of many is named and changes no verdict; a sound recording has no such row.

Each is read twice: by pages, and by SQLite (a table with a default is left to it). Both must say the same."""
import gzip
import json
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing
from make_engine_trace import Engine, parser_of_shapes, write_sqlite
from recording import make_recording

KINDS = {"unusable_event", "ends_before_start", "implausible_event", "kernels_overlap", "summary_row_damaged"}
KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
# What is planted, in what share of the rows of a table: the kind that names it.
PLANTED = {
    "text for a start": (KERNELS, "start = 'abc'", "unusable_event"),
    "a blob for an end": (KERNELS, "\"end\" = x'0102'", "unusable_event"),
    "nothing for an end": (KERNELS, "\"end\" = NULL", "unusable_event"),
    "a fraction for a start": (KERNELS, "start = start + 0.5", "unusable_event"),
    "text for a GPU": (KERNELS, "deviceId = 'gpu'", "unusable_event"),
    "text for a correlation": (KERNELS, "correlationId = 'x'", "unusable_event"),
    "ends before starts": (KERNELS, "start = \"end\" + 1000", "ends_before_start"),
    "a year away": (KERNELS, "\"end\" = start + 40000000000000000", "implausible_event"),
    "calls with text": (CALLS, "start = 'abc'", "unusable_event"),
    "calls that end first": (CALLS, "\"end\" = start - 1", "ends_before_start"),
    "text for a mark's start": ("NVTX_EVENTS", "start = 'abc'", "unusable_event"),
}
OVERLAPS = {
    "starts of zero": (KERNELS, "start = 0", 3),
    "ends of one minute": (KERNELS, "\"end\" = start + 60000000000", 3),
    "all fifty times as long": (KERNELS, "\"end\" = start + 50 * (\"end\" - start) + 20000", 1),
}


def shapes(folder):
    yield make_recording(folder / "model.sqlite", "analyze-model")
    for name, options in {"engine": "--steps 40 --layers 3", "workers": "--workers 4 --steps 30 --layers 2",
                          "eager": "--eager --depth 2 --steps 30 --layers 2"}.items():
        path = folder / f"{name}.sqlite"
        write_sqlite(Engine(parser_of_shapes().parse_args(options.split())), path)
        yield path


def answer(program, path):
    """metrics.json, and what a person reads."""
    printed = subprocess.run([program, "analyze", path, "--json"], check=True, capture_output=True, text=True).stdout
    shown = subprocess.run([program, "analyze", path], check=True, capture_output=True, text=True).stdout
    return json.loads(printed), shown


def rows(metrics):
    return {row["kind"]: (row["count"], row["severity"], row["sentence"]) for row in metrics["data_quality"] if row["kind"] in KINDS}


def plant(source, path, table, change, every, first=False):
    """How many rows were changed."""
    shutil.copy(source, path)
    connection = sqlite3.connect(path)
    where = f"rowid = (SELECT max(rowid) FROM {table})" if first else f"rowid % {every} = 0"
    where += " AND eventType = 59" if table == "NVTX_EVENTS" else ""
    count = connection.execute(f"UPDATE {table} SET {change} WHERE {where}").rowcount
    connection.commit()
    connection.close()
    return count


def leave_to_sqlite(path):
    connection = sqlite3.connect(path)
    for table in (KERNELS, CALLS):
        connection.execute(f"ALTER TABLE {table} RENAME TO old")
        columns = connection.execute("PRAGMA table_info(old)").fetchall()
        words = ", ".join(f'"{name}" {kind}' + (" DEFAULT 0" if name == "end" else "") for _, name, kind, *_ in columns)
        connection.execute(f"CREATE TABLE {table} ({words})")
        connection.execute(f"INSERT INTO {table} SELECT * FROM old")
        connection.execute("DROP TABLE old")
    connection.commit()
    connection.close()


def check_withheld(metrics, shown, what):
    first = metrics["findings"][0]
    assert first["id"] == "impossible_rows" and first["blocker"], (what, first)
    assert not any(finding["saving_ns"] for finding in metrics["findings"]), what
    assert "says nothing about speed" in metrics["verdict"], (what, metrics["verdict"])
    for words in ("was busy", "Top opportunity", "but no kernel"):
        assert words not in shown, (what, words, shown[:400])


def check_shape(program, source, folder):
    sound, _ = answer(program, source)
    assert not rows(sound), (source.name, rows(sound))
    path = folder / "planted.sqlite"
    num_checked = 0
    for what, (table, change, kind) in PLANTED.items():
        for every in (1, 7):
            count = plant(source, path, table, change, every)
            if count == 0:
                continue
            metrics, shown = answer(program, path)
            assert list(rows(metrics)) == [kind], (source.name, what, rows(metrics))
            assert rows(metrics)[kind][:2] == (count, "impossible"), (source.name, what, count, rows(metrics))
            check_withheld(metrics, shown, (source.name, what, every))
            leave_to_sqlite(path)
            assert rows(answer(program, path)[0]) == rows(metrics), (source.name, what, "another answer through SQLite")
            num_checked += 1
    for what, (table, change, every) in OVERLAPS.items():
        plant(source, path, table, change, every)
        metrics, shown = answer(program, path)
        assert list(rows(metrics)) == ["kernels_overlap"], (source.name, what, rows(metrics))
        check_withheld(metrics, shown, (source.name, what))
        num_checked += 1
    # One row of many.
    count = plant(source, path, KERNELS, "start = 'abc'", 0, first=True)
    metrics, _ = answer(program, path)
    assert rows(metrics)["unusable_event"][0] == count == 1, rows(metrics)
    many = sound["devices"] and sum(device["kernels"] for device in sound["devices"]) > 100
    assert many, f"{source.name} is too short for this test"
    assert rows(metrics)["unusable_event"][1] == "warning" and metrics["findings"][0]["id"] != "impossible_rows", metrics["findings"][0]
    return num_checked


def check_pytorch(program, folder):
    def document(change):
        events = [{"ph": "X", "cat": "kernel", "name": f"k{i % 3}", "pid": 0, "tid": 7, "ts": 100 * i, "dur": 80,
                   "args": {"device": 0, "stream": 7, "correlation": i}} for i in range(200)]
        events += [{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": 100 * i - 20, "dur": 5,
                    "args": {"correlation": i}} for i in range(1, 200)]
        for event in events[:200]:
            change(event)
        return {"schemaVersion": 1, "traceEvents": events}

    path = folder / "trace.json.gz"
    for what, change, kind in (("sound", {}, None), ("text for a time", {"ts": "abc"}, "unusable_event"),
                               ("a duration below 0", {"dur": -5}, "ends_before_start"),
                               ("a time far away", {"ts": 3.9e15}, "implausible_event"), ("a minute each", {"dur": 6e7}, "kernels_overlap")):
        # The first event tells what is far away.
        path.write_bytes(gzip.compress(json.dumps(document(lambda event, change=change: event["ts"] and event.update(change))).encode()))
        metrics, shown = answer(program, path)
        assert list(rows(metrics)) == ([kind] if kind else []), (what, rows(metrics))
        if kind:
            check_withheld(metrics, shown, what)


def check_summary(program, folder):
    heading = "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
    path = folder / "kernels.csv"
    for row, is_sound in (("50.0,1000,10,100,100,90,110,1,{}", True), ("50.0,abc,10,100,100,90,110,1,{}", False),
                          ("50.0,-1000,10,100,100,90,110,1,{}", False), ("50.0,1000,many,100,100,90,110,1,{}", False)):
        path.write_text(heading + row.format("gemm") + "\n" + "50.0,1000,10,100,100,90,110,1,copy\n")
        metrics, shown = answer(program, path)
        assert bool(rows(metrics)) != is_sound, (row, rows(metrics))
        if not is_sound:
            check_withheld(metrics, shown, row)
            assert not re.search(r"of kernels, from a summary", metrics["verdict"])


def main():
    program = testing.arguments("program").program
    num_checked = 0
    with testing.scratch(prefix="gpuwhy-nonsense-") as folder:
        for source in shapes(folder):
            num_checked += check_shape(program, source, folder)
        check_pytorch(program, folder)
        check_summary(program, folder)
    print(f"{num_checked} planted recordings are distinguished from sound ones")
    return 0


if __name__ == "__main__":
    sys.exit(main())
