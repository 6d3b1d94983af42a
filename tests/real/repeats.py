#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpuwhy run --repeat and --against: the order of the runs, what is thrown away, and verdicts on programs whose truth
is known: one that sleeps longer, one that fails, and a model of twice as many bytes."""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from runs import guarded


def repeats(program, folder, *words, code, timeout=300):
    result = subprocess.run([program, "run", "--passes", "baseline", f"artifacts.dir={folder / 'runs'}", *words],
                            capture_output=True, text=True, timeout=timeout, cwd=folder)
    assert result.returncode in code, (result.returncode, result.stdout, result.stderr)
    lines = result.stdout.splitlines()
    assert len(lines) == 1, "standard output has one line, the folder of the runs"
    return pathlib.Path(lines[0]), result


def check_slower(program, workload, folder):
    group, result = repeats(program, folder, "--repeat", "6", "--against", "workload.arguments=[--step-ms,'3']", "--",
                            workload, "--steps", "10", "--prefill-ms", "20", code=[3])
    order = sorted((bundle.name, side) for side in "ab" for bundle in (group / side).iterdir())
    # Two runs of the same second get a number after it, which sorts within its folder only.
    told = [line.split(", ")[1][0] for line in result.stderr.splitlines() if line.startswith("run ")]
    assert "".join(told) == "abbaabbaabba", told
    assert len(order) == 12 and not (group / "warmup").exists(), order
    assert "warm-up of a" in result.stderr and "warm-up of b" in result.stderr
    comparison = json.loads((group / "compare.json").read_text())
    assert comparison["verdict"] == "regress" and (group / "compare.md").stat().st_size > 500
    assert "regress" in (group / "compare.html").read_text()
    tpot = next(row for row in comparison["metrics"] if row["key"] == "aggregates.tpot.p50_ns")
    assert tpot["change"] == "worse" and 1.2 < tpot["ratio"] < 1.8, tpot
    assert group.stat().st_mode & 0o077 == 0, "others can read the folder"
    # The same bundles say the same to compare; the other way round TPOT is better, and the prefill, which is the same on
    # both sides, may be too noisy to tell.
    sides = [[str(bundle) for bundle in sorted((group / side).iterdir())] for side in "ab"]
    for base, candidate, change in ((*sides, "worse"), (*sides[::-1], "better")):
        again = subprocess.run([program, "compare", *base, "--to", *candidate, "--format", "json"], capture_output=True,
                               text=True, timeout=250)
        assert again.returncode == 0, (again.returncode, again.stdout)  # compare tells, gate judges
        found = {row["key"]: row["change"] for row in json.loads(again.stdout)["metrics"]}
        assert found["aggregates.tpot.p50_ns"] == change, found
    print(f"step of 2 ms against 3 ms: {comparison['verdict']}, ratio {tpot['ratio']:.3f}")


def check_failing(program, workload, folder):
    group, result = repeats(program, folder, "--repeat", "2", "--against", "workload.arguments=[--exit,'7']", "--",
                            workload, "--steps", "2", code=[7])
    assert not (group / "compare.json").exists(), "a side that fails is compared"
    assert "failed" in result.stderr, result.stderr


def check_model(program, folder):
    """Q8_0 against F16: twice the bytes per token, in the same program."""
    group, _ = repeats(program, folder, "--repeat", "6", "--passes", "baseline,operators", "--against", "model.dtype=f16",
                       "--against", "model.config=tmp/models/llama_100m_f16.gguf", "--against",
                       'model.workload.prepare=[llama_runner,--make-model,llama_100m_f16,"{model}"]',
                       "model.target=llama_100m", code=[0, 3, 4])
    comparison = json.loads((group / "compare.json").read_text())
    tpot = next(row for row in comparison["metrics"] if row["key"] == "aggregates.tpot.p50_ns")
    assert tpot["ratio"] > 1 and tpot["change"] in ("worse", "unclear"), tpot
    assert comparison["verdict"] in ("regress", "inconclusive"), comparison["sentence"]
    # Both sides do the same work, and most of it is matrix products. Which operators differ most, over prefill and decode
    # together, is the affair of the processor and of what else it does: some multiply F16 faster than they unpack Q8_0.
    operators = comparison["operators"]
    kinds = {row["kind"]: row for row in operators["kinds"]}
    for side in ("base", "candidate"):
        largest = max(kinds, key=lambda kind: kinds[kind][f"{side}_ns"])
        assert largest.startswith("MUL_MAT"), (side, kinds)
    differing = [row for row in operators["rows"] if row["base_calls"] != row["candidate_calls"]]
    assert operators["rows"] and not differing, differing
    sums = sum(row["difference_ns"] for row in kinds.values())
    assert operators["difference_ns"] == sums + operators["not_in_rows_ns"], (kinds, operators)
    print(f"Q8_0 against F16: {comparison['verdict']}, TPOT x {tpot['ratio']:.2f}, p {tpot['p']:.3g}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--workload", required=True)
    parser.add_argument("--llama-runner", type=pathlib.Path)
    asked, _ = parser.parse_known_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="gpuwhy-repeats-"))
    try:
        check_slower(asked.program, asked.workload, folder)
        check_failing(asked.program, asked.workload, folder)
        if asked.llama_runner:
            os.environ["PATH"] = f"{asked.llama_runner.parent}:{os.environ['PATH']}"
            check_model(asked.program, folder)
    finally:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    guarded(main)
