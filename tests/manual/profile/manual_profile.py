#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A full deep run of one model target, and every file and section of its bundle. See README.md beside it."""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

# What a run of a target leaves, with a GPU or without.
FILES = ["manifest.json", "env.json", "config.yaml", "inputs.yaml", "metrics.json", "kernels.md", "baseline/cmd.txt",
         "baseline/log.txt", "baseline/metrics.json", "baseline/ranges.csv", "nsys/cmd.txt", "nsys/log.txt", "nsys/run.sqlite"]
OPERATOR_FILES = ["baseline/operators.csv", "operators/cmd.txt", "operators/log.txt"]
GPU_FILES = ["ncu/cmd.txt", "ncu/log.txt", "ncu/plan.json", "ncu/sections.txt"]
METRICS = ["verdict", "capture", "findings", "stages", "baseline", "overhead", "ledgers", "efficiency", "families",
           "kernels", "counters", "data_quality"]
# Reports for people, each with the words its headings must have.
REPORTS = {"report.md": ["timings", "mfu"], "stakeholder_summary.md": ["executive summary", "recommendations", "mfu", "top kernels"],
           "operators.md": ["operator"]}


def headings(path):
    return " ".join(line.lower() for line in path.read_text().splitlines() if line.startswith("#") or "|" in line)


class Bundle:
    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.manifest = self.json("manifest.json")
        self.machine = self.json("env.json")["machine"]

    def json(self, name):
        return json.loads((self.path / name).read_text())

    def has_gpu(self):
        return bool(self.machine["gpus"])

    def check_files(self, has_operators):
        expected = FILES + (OPERATOR_FILES if has_operators else []) + (GPU_FILES if self.has_gpu() else [])
        missing = [name for name in expected if not (self.path / name).is_file() or not (self.path / name).stat().st_size]
        assert not missing, f"missing or empty: {missing}"
        assert not (self.path / "running.json").exists()
        listed = {entry["path"] for entry in self.manifest["files"]}
        assert set(expected) - {"manifest.json"} <= listed, set(expected) - listed
        if self.has_gpu():
            assert list((self.path / "ncu").glob("*.ncu-rep")), "ncu left no report"

    def check_run(self, target):
        run = self.manifest["run"]
        assert run["exit_code"] == 0 and run["contract"]["verdict"] == "met", run["contract"]
        passes = {entry["pass"]: entry for entry in run["passes"]}
        for name in ("baseline", "nsys"):
            assert passes[name]["status"] == "done", passes[name]
        wanted = ("done", None) if self.has_gpu() else ("skipped", "no_gpu")
        assert (passes["ncu"]["status"], passes["ncu"]["reason"]) == wanted, passes["ncu"]
        assert run["model"]["target"] == target and run["model"]["params"] > 0, run["model"]
        assert f"target: {target}" in (self.path / "inputs.yaml").read_text()

    def check_metrics(self):
        metrics = self.json("metrics.json")
        absent = [key for key in METRICS if key not in metrics]
        assert not absent, f"metrics.json has no {absent}"
        stages = {row["stage"] for row in metrics["stages"]}
        assert {"prefill", "decode"} <= stages, stages
        for row in metrics["efficiency"]["stages"]:
            assert row["flops"] > 0 and row["bytes"] > 0, row
            assert (row["mfu"]["wall_fraction"] is not None) == self.has_gpu(), row
        assert bool(metrics["kernels"]) == self.has_gpu(), "kernels where there is a GPU, and only there"
        if self.has_gpu():
            assert sum(row["total_ns"] for row in metrics["kernels"]) == metrics["capture"]["kernel_ns"]
        else:
            assert metrics["efficiency"]["reason"] == "no_gpu", metrics["efficiency"]["reason"]

    def check_reports(self):
        words = headings(self.path / "kernels.md")
        assert "kernel" in words, words
        for name, wanted in REPORTS.items():
            found = headings(self.path / name)
            assert all(word in found for word in wanted), (name, found)


def profile(program, target, overrides, directory):
    """Runs the target in `directory` and checks its bundle, which is returned."""
    result = subprocess.run([program, "run", "--progress", "plain", f"model.target={target}", *overrides], cwd=directory,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=3600)
    print(result.stderr, end="", file=sys.stderr)
    assert result.returncode == 0, f"gpuwhy run exited with {result.returncode}: {result.stderr}"
    bundle = Bundle(directory / result.stdout.strip().splitlines()[-1])
    passes = [entry["pass"] for entry in bundle.manifest["run"]["passes"]]
    bundle.check_run(target)
    bundle.check_files("operators" in passes)
    bundle.check_metrics()
    bundle.check_reports()
    verified = subprocess.run([program, "view", "--verify", bundle.path], stdout=subprocess.DEVNULL)
    assert verified.returncode == 0, "files are not as the manifest says"
    print(f"{target}: complete, {'with' if bundle.has_gpu() else 'without'} a GPU: {bundle.path}")
    return bundle


def options(default_target):
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", type=pathlib.Path, default=pathlib.Path("build/release/gpuwhy"))
    parser.add_argument("--target", default=default_target)
    parser.add_argument("--scratch", action="store_true", help="work in a folder that goes away")
    parser.add_argument("overrides", nargs="*")
    return parser.parse_args()


def main(default_target, check=lambda bundle, target: None):
    asked = options(default_target)
    program = asked.program.resolve()
    if not shutil.which("nsys") or not shutil.which("ncu"):
        print("skipped: nsys and ncu are not installed (tools/install-deps.sh nsight)")
        return 77
    dry = subprocess.run([program, "run", "--dry-run", f"model.target={asked.target}", *asked.overrides],
                         capture_output=True, text=True)
    if "neither on PATH nor beside gpuwhy" in dry.stderr:
        print("skipped: " + dry.stderr.splitlines()[0])
        return 77
    directory = pathlib.Path(tempfile.mkdtemp(prefix="gpuwhy-manual-") if asked.scratch else os.getcwd())
    try:
        check(profile(program, asked.target, asked.overrides, directory), asked.target)
    finally:
        if asked.scratch:
            shutil.rmtree(directory, ignore_errors=True)
    return 0


def as_test(*arguments):
    """Ends the process, as skipped where nsys itself failed."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "real"))
    from runs import guarded
    guarded(lambda: main(*arguments))


if __name__ == "__main__":
    as_test("llama_100m")
