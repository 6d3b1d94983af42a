#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Passes that are read from the order of kernels, against the steps that the engine marks: as many, each with the same
kernels, and of the same kind (prefill, decode), or nothing is claimed. Recordings of the corpus with marks and a model are checked too, if the corpus is there."""
import collections
import csv
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing
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
        options += ["--prefill-every", "6", "--steps", "20"] if layers == 24 else []
        yield [str(option) for option in options]


def passes_of(program, path):
    """Kernels and kind of each pass, by process."""
    result = subprocess.run([program, "table", "launches", str(path), "--format", "csv"], capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    counts = collections.defaultdict(collections.Counter)
    kinds = {}
    for row in csv.DictReader(result.stdout.splitlines()):
        if row["pass"]:
            counts[int(row["pid"])][int(row["pass_number"])] += 1
            kinds[int(row["pid"]), int(row["pass_number"])] = row["pass_kind"]
    return {pid: [(passes[number], kinds[pid, number]) for number in sorted(passes)] for pid, passes in counts.items()}


def check_agreement(program, path):
    """Where marks are there too, those that run a pass of a told kind say the same."""
    result = subprocess.run([program, "analyze", str(path), "--json"], capture_output=True, text=True, timeout=300)
    metrics = json.loads(result.stdout)
    agreement = metrics["structure"]["recovered"]["agrees_with_marks"]
    assert agreement is None or agreement["n"] == agreement["of"], (path.name, agreement)
    assert all(row["kind"] != "marks_differ_from_passes" for row in metrics["data_quality"]), path.name
    return metrics


def check_engine(program, options, path, told):
    """Whether passes were claimed; if so they are the steps. `told` counts the kinds of steps: marked, recovered."""
    engine = Engine(parser_of_shapes().parse_args(options))
    truth = engine.replicas
    write_sqlite(engine, path)
    found = passes_of(program, path)
    if not found:
        return False
    for replica in truth:
        for pid in replica["pids"]:
            steps = [step["kernels"] // len(replica["pids"]) for step in replica["steps"]]
            assert [kernels for kernels, _ in found[pid]] == steps, (options, pid, found[pid], steps)
            for step, (_, kind) in zip(replica["steps"], found[pid]):
                assert kind in ("", step["stage"]), (options, pid, step["stage"], kind)
                told[step["stage"], kind] += 1
    check_agreement(program, path)
    return True


def check_recording(program, path):
    metrics = check_agreement(program, path)
    steps = sum(stage["instances"] for stage in metrics["stages"])
    passes = sum(row["passes"] for row in metrics["structure"]["passes"])
    assert steps == passes, (path.name, steps, passes)


def main():
    options = testing.arguments("program")
    claimed = []
    told = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for shape in shapes():
            claimed.append(check_engine(options.program, shape, pathlib.Path(folder) / "run.sqlite", told))
    recordings = [options.corpus / name for name in MARKED] if options.corpus and options.corpus.is_dir() else []
    for path in recordings:
        check_recording(options.program, path)
    assert claimed.count(True) >= 0.9 * len(claimed), claimed
    print(f"passes are the marked steps in {claimed.count(True)} of {len(claimed)} generated recordings, nothing is claimed "
          f"in the others; the same in {len(recordings)} real ones")
    for stage in ("prefill", "decode", "mixed"):
        steps = sum(number for (marked, _), number in told.items() if marked == stage)
        print(f"{stage}: {told[stage, stage]} of {steps} steps have this kind without marks, {told[stage, '']} have none")
    assert told["decode", "decode"] > told["decode", ""], told


if __name__ == "__main__":
    main()
