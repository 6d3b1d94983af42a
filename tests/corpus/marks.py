#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Marks and windows on recordings with ranges of their own.

Where no stage is known, each option that a report suggests is typed: it must give a stage with the instances, the time
and the kernels that the report promised. Two windows that meet must sum to the whole recording.

  marks.py --program build/release/gpuwhy --corpus DIR
"""
import json
import pathlib
import shlex
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

# Recording: what its report suggests first.
FIRST = {
    "v2024.6.2_cs336_lm2.7B_a100_nvtx.sqlite": ["--mark step='benchmark_loop'", "--mark warmup='warmup'"],
    "v2025.1.3_cs336_train_rtx3070ti.sqlite": ["--mark forward='Forward'", "--mark step='Run Benchmark'"],
    "v2026.2.1_cs336_windows_rtx5000ada.sqlite": [],
    "v2024.6.2_llama3_layer_sim.sqlite": ["--step 'token_*'", "--mark step='layer_processing_simulation'"],
}


def run(program, *words):
    result = subprocess.run([program, *map(str, words)], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, (words, result.stderr)
    return result.stdout


def metrics(program, path, *options):
    return json.loads(run(program, "analyze", path, "--json", *options))


def check_suggestions(program, path, expected):
    whole = metrics(program, path)
    assert "no stage marks" in whole["capture"]["stage_source"], whole["capture"]["stage_source"]
    marks = whole["possible_marks"]
    assert [mark["option"] for mark in marks[:len(expected)]] == expected, marks
    for text in (run(program, "analyze", path), run(program, "report", path, "--format", "md")):
        assert all(mark["option"] in text for mark in marks), text
    for mark in marks:
        option = shlex.split(mark["option"])
        made = metrics(program, path, *option)
        name = option[1].split("=")[0] if option[0] == "--mark" else "step"
        stage = next(row for row in made["stages"] if row["stage"] == name)
        assert made["capture"]["stage_source"].startswith(option[0]), made["capture"]["stage_source"]
        assert stage["instances"] == mark["instances"], (mark, stage)
        assert stage["host_total_ns"] == mark["host_ns"], (mark, stage)
        # A step also owns what its thread launches after its mark.
        owns = stage["kernel_ns"] == mark["kernel_ns"] or (name == "step" and stage["kernel_ns"] > mark["kernel_ns"])
        assert owns, (mark, stage)
        assert made["possible_marks"] == [], made["possible_marks"]
    return len(marks)


def check_windows(program, path):
    whole = metrics(program, path)["capture"]
    trimmed = metrics(program, path, "--trim")["capture"]
    assert trimmed["kernel_ns"] == whole["kernel_ns"] and trimmed["duration_ns"] <= whole["duration_ns"], trimmed
    assert trimmed["unattributed_kernel_ns"] == whole["unattributed_kernel_ns"], trimmed
    middle_ns = (trimmed["window"]["from_ns"] + trimmed["window"]["to_ns"]) // 2
    first = metrics(program, path, "--to", f"{middle_ns}ns")["capture"]
    second = metrics(program, path, "--from", f"{middle_ns}ns")["capture"]
    assert first["window"]["from_ns"] == 0 and first["window"]["to_ns"] == middle_ns, first
    assert second["window"]["from_ns"] == middle_ns and second["window"]["to_ns"] == whole["duration_ns"], second
    assert first["kernel_ns"] > 0 and second["kernel_ns"] > 0, (first, second)
    assert first["kernel_ns"] + second["kernel_ns"] == whole["kernel_ns"], (first, second)
    assert first["unattributed_kernel_ns"] + second["unattributed_kernel_ns"] == whole["unattributed_kernel_ns"]


def check_steps(program, path):
    """64 tokens of 24 kernels each, launched and finished one after the other."""
    made = metrics(program, path, "--step", "token_*", "--steps", "10..20")
    assert made["capture"]["window"]["why"] == "steps 10..20 of 64", made["capture"]
    stage = made["stages"][0]
    assert (stage["stage"], stage["instances"], stage["kernels"]) == ("step", 11, 264), stage
    parts = [metrics(program, path, "--step", "token_*", "--steps", span)["capture"]["kernel_ns"]
             for span in ("0..9", "10..20", "21..")]
    assert sum(parts) == metrics(program, path)["capture"]["kernel_ns"], parts


def main():
    arguments = testing.arguments("program", "corpus")
    if not arguments.corpus.exists():
        testing.skip("needs the corpus")
    typed = 0
    for name, expected in FIRST.items():
        path = arguments.corpus / "nsys_sqlite" / name
        typed += check_suggestions(arguments.program, path, expected)
        check_windows(arguments.program, path)
    check_steps(arguments.program, arguments.corpus / "nsys_sqlite" / "v2024.6.2_llama3_layer_sim.sqlite")
    print(f"{typed} suggestions hold what they promise")
    return 0


if __name__ == "__main__":
    sys.exit(main())
