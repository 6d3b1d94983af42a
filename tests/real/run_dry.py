#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpuwhy run --dry-run on every preset: starts nothing, and the installed nsys and ncu accept every command it prints."""
import argparse
import functools
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from runs import AgentFailed, agent_failed, each

def dry(program, directory, *overrides):
    result = subprocess.run([program, "run", "--dry-run", f"artifacts.dir={directory}/none", *overrides, "--",
                             "/bin/true"], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result
    assert not (directory / "none").exists(), "a dry run made a bundle"
    lines = result.stdout.splitlines()
    commands = {name[2:]: command for name, command in zip(lines[::2], lines[1::2])}
    assert list(commands) == ["baseline", "nsys", "ncu"], lines
    return commands


def accept(command, directory, seen):
    """Runs the command as printed, with real folders for the words that stand for them; its program is /bin/true."""
    for folder in ("SCRATCH", "BUNDLE/nsys", "BUNDLE/ncu"):
        (directory / folder).mkdir(parents=True, exist_ok=True)
    command = command.replace("SCRATCH", f"{directory}/SCRATCH").replace("BUNDLE", f"{directory}/BUNDLE")
    if command in seen:
        return
    seen.add(command)
    result = subprocess.run(["/bin/sh", "-c", command.replace("gpuwhy-RUN", f"gpuwhy-{os.getpid()}-{len(seen)}")],
                            capture_output=True, text=True, timeout=250,
                            env={**os.environ, "TMPDIR": str(directory / "SCRATCH")})
    if result.returncode != 0 and agent_failed(result.stdout, result.stderr):
        raise AgentFailed(result.stderr)
    assert result.returncode == 0, (command, result.stdout, result.stderr)
    # A dry run writes no files, so the loader misses the library of marks, and says so.
    said = [line for line in result.stderr.splitlines() if "libgpuwhy_marks.so" not in line]
    assert not any("error" in line.lower() for line in said), (command, result.stderr)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    arguments = parser.parse_known_args()[0]
    if not shutil.which("nsys") or not shutil.which("ncu"):
        print("skipped: nsys and ncu are not installed (tools/install-deps.sh nsight)")
        return 77
    directory = pathlib.Path(tempfile.mkdtemp(prefix="gpuwhy-dry-"))
    conf = pathlib.Path(__file__).parents[2] / "conf"
    seen, checks = set(), {}
    try:
        presets = [f"{group}={path.stem}" for group in ("workload", "profiling/nsys", "profiling/ncu")
                   for path in sorted((conf / group).glob("*.yaml"))]
        assert len(presets) >= 12, presets
        for overrides in [[preset] for preset in presets] + [
                ["run.mode=light"], ["run.gate=LLM:request"], ["run.gate=:a range"], ["run.gate=cuda_profiler_api"],
                ["pipeline.nsys.gating_nvtx=false", "pipeline.ncu.gating_nvtx=false"],
                ["pipeline.nsys.trace_fork_before_exec=true", "pipeline.nsys.duration_s=5"],
                ["pipeline.ncu.metrics=[dram__bytes.sum, sm__throughput.avg.pct_of_peak_sustained_elapsed]"]]:
            for name, command in dry(arguments.program, directory, *overrides).items():
                if name != "baseline":
                    checks[f"{name} {' '.join(overrides)}"] = functools.partial(accept, command, directory, seen)
        code = each(checks)
        print(f"{len(seen)} commands")
        # The oracle can say no.
        try:
            accept(dry(arguments.program, directory)["ncu"].replace("LLM@prefill/", "LLM@*/"), directory, seen)
        except AssertionError:
            return code
        raise AssertionError("ncu accepts everything")
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
