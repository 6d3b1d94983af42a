#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test of what `gpuwhy run` says of a program without marks: each fact once, the command without its secrets, and what to type next.

Only the baseline pass runs, so neither a GPU nor nsys is needed.
"""
import functools
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import testing

SECRET = "zz81-flag-secret-42"


def run(program, folder, *words):
    result = subprocess.run([program, "run", "--out", folder, "--passes", "baseline", *words], capture_output=True, text=True, cwd=folder)
    assert result.returncode == 0, (words, result.returncode, result.stderr)
    return pathlib.Path(folder, result.stdout.strip()), result.stderr


def check_command(program, folder):
    bundle, said = run(program, folder, "--", sys.executable, "-c", "pass", "--api-key", SECRET)
    metrics = json.loads((bundle / "metrics.json").read_text())
    command = f"{pathlib.Path(sys.executable).name} -c pass --api-key '[scrubbed]'"
    assert metrics["capture"]["command"] == command, metrics["capture"]["command"]
    page = (bundle / "report.html").read_text()
    assert "<title>" + command.replace("'", "&#39;") + " - gpuwhy report</title>" in page, page[:2000]
    assert command.split(" --")[0] in (bundle / "stakeholder_summary.md").read_text()
    assert f"gpuwhy run --mark transformers -- {command}" in said, said
    for path in bundle.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path


def check_repeats(program, folder):
    group, said = run(program, folder, "--repeat", "2", "--", sys.executable, "-c", "pass")
    assert said.count("marks no stages") == 1, said
    assert said.count(": program ") == 3 and "n/a" not in said, said  # the warm-up and two runs
    told = subprocess.run([program, "gate", group, "--self-test"], capture_output=True, text=True)
    assert "2 runs: too few to test the gate, which needs at least 10;" in told.stdout and "length of the program: " in told.stdout, told


def check_json(program, folder):
    result = subprocess.run([program, "run", "--repeat", "2", "--against", "workload.environment.X=1", "--passes", "baseline", "--progress",
                             "json", "--out", folder, "--", "true"], capture_output=True, text=True)
    events = [json.loads(line) for line in result.stderr.splitlines()]
    assert events[-1]["event"] == "verdict" and events[-1]["exit_code"] == result.returncode, (result.returncode, events[-1])


def check_failure(program, folder):
    """A program that fails early is not fast, its log is named, and a log file gets no live progress."""
    told = subprocess.run([program, "run", "--out", folder, "--passes", "baseline", "--", sys.executable, "-c", "raise SystemExit(3)"],
                          capture_output=True, text=True, cwd=folder, env={**os.environ, "COLUMNS": "100"})
    assert told.returncode == 7 and "\x1b" not in told.stderr, told
    bundle = pathlib.Path(folder, told.stdout.strip())
    summary = (bundle / "stakeholder_summary.md").read_text()
    assert "Fix the program; baseline/log.txt" in summary and "runs for" not in summary, summary
    assert (bundle / "baseline/log.txt").is_file()
    limits = pathlib.Path(folder, "limits.yaml")
    limits.write_text("budgets:\n  aggregates.program_ns: {at_most: 60000000000}\n")
    gate = subprocess.run([program, "gate", bundle, "--budget", limits], capture_output=True, text=True)
    assert gate.returncode == 7 and "exited with code 3" in gate.stdout, gate


def check_interrupt(program, folder, sent, words):
    process = subprocess.Popen([program, "run", "--out", folder, "--passes", "baseline", "--", sys.executable, "-c",
                                "import time; print('up', flush=True); time.sleep(60)"], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for line in process.stderr:
        if line == "up\n":  # it runs
            break
    process.send_signal(sent)
    said = process.stderr.read()
    assert process.wait(timeout=250) == 130, (process.returncode, said)
    assert said.count(words) == 1 and "marks no stages" not in said, said
    assert sent == signal.SIGINT or "at your request" not in said, said


def main():
    program = testing.arguments("program").program
    interrupts = [functools.partial(check_interrupt, sent=sent, words=words)
                  for sent, words in ((signal.SIGINT, "at your request"), (signal.SIGTERM, "terminated (SIGTERM)"))]
    for check in (check_command, check_repeats, check_json, check_failure, *interrupts):
        with tempfile.TemporaryDirectory() as folder:
            check(program, folder)
    print("a run says each fact once")


if __name__ == "__main__":
    main()
