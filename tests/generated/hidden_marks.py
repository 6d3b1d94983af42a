#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Passes that are read from the order of kernels, against the steps that the engine marks: as many, each with the same
kernels, or nothing is claimed. Recordings of the corpus with marks and a model are held against it too, where it is there."""
import argparse
import collections
import csv
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from make_engine_trace import Engine, parser_of_shapes, write_sqlite

# Recordings with one marked step around each pass.
MARKED = ("kineto/tracelens_sglang_qwen3-8b_decode.json.gz", "kineto/tracelens_sglang_qwen3-8b_prefilldecode.json.gz",
          "kineto/tracelens_vllm_decode_fullgraph.json.gz", "kineto/tracelens_vllm_prefilldecode_piecewise.json.gz")


def shapes():
    for depth, workers, replicas, layers in itertools.product((0, 1, 2), (1, 2, 4), (1, 2), (4, 6, 24)):
        options = ["--whole-layers", "--depth", depth, "--workers", workers, "--replicas", replicas, "--layers", layers]
        options += ["--after-marker"] if (depth + workers) % 2 else []
        options += ["--eager"] if depth == 2 else []
        options += ["--mixed-every", "3"] if layers == 6 else []
        yield [str(option) for option in options]


def passes_of(program, path):
    """Kernels of each pass, by process."""
    result = subprocess.run([program, "layers", str(path), "--kernels"], capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    counts = collections.defaultdict(collections.Counter)
    for row in csv.DictReader(result.stdout.splitlines()):
        counts[int(row["pid"])][int(row["number"])] += 1
    return {pid: [passes[number] for number in sorted(passes)] for pid, passes in counts.items()}


def check_engine(program, options, path):
    """Whether passes were claimed; if so they are the steps."""
    engine = Engine(parser_of_shapes().parse_args(options))
    truth = engine.replicas
    write_sqlite(engine, path)
    found = passes_of(program, path)
    if not found:
        return False
    for replica in truth:
        for pid in replica["pids"]:
            steps = [step["kernels"] // len(replica["pids"]) for step in replica["steps"]]
            assert found[pid] == steps, (options, pid, found[pid], steps)
    return True


def check_recording(program, path):
    result = subprocess.run([program, "analyze", str(path), "--json"], capture_output=True, text=True, timeout=300)
    metrics = json.loads(result.stdout)
    steps = sum(stage["instances"] for stage in metrics["stages"])
    passes = sum(row["passes"] for row in metrics["structure"]["passes"])
    assert steps == passes, (path.name, steps, passes)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--corpus", type=pathlib.Path)
    options = parser.parse_args()
    claimed = []
    with tempfile.TemporaryDirectory() as folder:
        for shape in shapes():
            claimed.append(check_engine(options.program, shape, pathlib.Path(folder) / "run.sqlite"))
    recordings = [options.corpus / name for name in MARKED] if options.corpus and options.corpus.is_dir() else []
    for path in recordings:
        check_recording(options.program, path)
    assert claimed.count(True) >= 0.9 * len(claimed), claimed
    print(f"passes are the marked steps in {claimed.count(True)} of {len(claimed)} generated recordings, nothing is claimed "
          f"in the others; the same in {len(recordings)} real ones")


if __name__ == "__main__":
    main()
