#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""llama.cpp's real server under gpuwhy run --server: real nsys, concurrent streaming clients, requests joined to marked batches.

The parts of each request's time to first token must sum to what the client measured, and the marks to the tokens it sent and
got. On a CPU with random weights: what is tested is the joining, not speed."""
import csv
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

from runs import Run, guarded, processes_of
from serve import free_port

PROMPT, OUTPUT = 48, 12
PARTS = ("network_ns", "queue_busy_ns", "queue_idle_ns", "prefill_gpu_ns", "prefill_host_ns", "other_steps_ns", "between_ns",
         "delivery_ns")
# What a sum may differ by: a millisecond and a hundredth.
SLACK_NS, SLACK_SHARE = 1_000_000, 0.01


def server_command(server, model, streams):
    return shlex.join([str(server), "-m", str(model), "--port", str(free_port()), "-np", str(streams), "-c", str(128 * streams), "-t",
                       "1", "-tb", "1", "--no-warmup"])


def check_window(arguments, server, model, directory):
    """Some seconds in the middle of a load, with decode steps in them."""
    command = server_command(server, model, 4)
    client = shlex.join([arguments.program, "load", "{url}", "--requests", "24", "--prompt-tokens", "16", "--output-tokens", "48", "-o",
                         "{requests}"])
    words = [arguments.program, "run", "--progress", "plain", "-o", directory, "--server", command, "--client", client]
    result = subprocess.run([*words, "--passes", "nsys", "--after", "1", "--seconds", "2", "--stage", "decode"], capture_output=True,
                            text=True, timeout=280)
    run = Run(result.returncode, result.stdout, result.stderr)
    assert run.code == 0, run
    steps = {stage["stage"]: stage["instances"] for stage in run.json("metrics.json")["stages"]}
    drive = run.json("nsys/drive.json")
    length = (drive["window_end_ns"] - drive["window_start_ns"]) / 1e9
    rows = [json.loads(line) for line in (run.bundle / "nsys/requests.jsonl").read_text().splitlines()]
    arrived = sum(drive["window_start_ns"] <= at <= drive["window_end_ns"] for row in rows for at in row["token_ns"])
    # A token is of a step, and a step has at most one of each of the four streams.
    assert len(rows) == 24 and 2 <= length < 2.5, (len(rows), length)
    assert arrived / 4 <= sum(steps.values()) + 1 and steps["decode"] > 0, (arrived, steps)
    print(f"a window of {length:.3f} s: {steps}, {arrived} of {sum(len(row['token_ns']) for row in rows)} tokens arrived in it")
    refused = subprocess.run([*words, "--steps", "5"], capture_output=True, text=True)
    assert refused.returncode == 2 and "does not count its steps" in refused.stderr, refused


def check_load(arguments, server, model, directory, streams):
    command = server_command(server, model, streams)
    client = shlex.join([arguments.program, "load", "{url}", "--streams", str(streams), "--requests", str(2 * streams),
                         "--prompt-tokens", str(PROMPT), "--output-tokens", str(OUTPUT), "-o", "{requests}"])
    result = subprocess.run([arguments.program, "run", "--progress", "plain", "-o", directory, "--server", command, "--client",
                             client], capture_output=True, text=True, timeout=280)
    run = Run(result.returncode, result.stdout, result.stderr)
    assert run.code == 0, run
    assert not processes_of(run.bundle), processes_of(run.bundle)
    check_marks(run, 2 * streams)
    metrics = run.json("metrics.json")
    summary = metrics["requests"]
    assert summary["requests"] == 2 * streams, summary
    sent = {row["id"]: row for row in map(json.loads, (run.bundle / "nsys/requests.jsonl").read_text().splitlines())}
    told = [row for row in summary["rows"] if row["told"] == "named"]
    for row in told:
        measured = sent[row["id"]]["first_token_ns"] - sent[row["id"]]["sent_ns"]
        parts = sum(row[name] or 0 for name in PARTS)
        assert abs(parts - measured) <= SLACK_NS + SLACK_SHARE * measured, (row, measured)
    print(f"{streams} streams: {len(told)} of {2 * streams} requests broken down; {summary['clock']['sentence']}")
    assert len(told) >= 0.9 * min(2 * streams, len(summary["rows"])), summary


def check_marks(run, num_requests):
    """The unprofiled pass: batches hold all tokens that were sent, and one for each that came back but the last."""
    prefill = decode = 0
    with open(run.bundle / "baseline/ranges.csv", newline="") as file:
        for row in csv.DictReader(file):
            found = re.fullmatch(r"step\[prefill=(\d+) decode=(\d+) seqs=([\d:,]+)\]", row["name"])
            assert found and row["domain"] == "LLM", row
            tokens = sum(int(part.split(":")[1]) for part in found[3].split(","))
            assert tokens == int(found[1]) + int(found[2]) == int(row["payload"]), row
            prefill += int(found[1])
            decode += int(found[2])
    assert prefill == num_requests * PROMPT, (prefill, num_requests)
    assert decode == num_requests * (OUTPUT - 1), (decode, num_requests)


def main():
    arguments = testing.arguments("program")
    prefix = pathlib.Path(os.environ.get("GPUWHY_SERVER_PREFIX", pathlib.Path.home() / ".cache/gpuwhy/llama-server"))
    server = prefix / "llama-server"
    if not server.exists() or not arguments.llama_runner:
        testing.skip("llama.cpp's server is not here (tools/install-deps.sh workload server)")
    if not shutil.which("nsys"):
        testing.skip("nsys is not installed (tools/install-deps.sh nsight)")
    with tempfile.TemporaryDirectory(prefix="gpuwhy-llama-server-") as directory:
        model = pathlib.Path(directory) / "model.gguf"
        subprocess.run([arguments.llama_runner, "--make-model", "llama_100m", model], check=True, capture_output=True)
        for streams in (4, 16):
            check_load(arguments, server, model, directory, streams)
        check_window(arguments, server, model, directory)
    return 0


if __name__ == "__main__":
    guarded(main)
