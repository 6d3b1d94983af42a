#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The ncu pass end to end without a GPU: doubles stand for nsys and ncu. The one of nsys delivers a made recording with
kernels; the one of ncu has the real ncu check its arguments, prints what ncu prints and delivers a recorded report."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

from runs import Runner, end, guarded, leftovers, processes_of, wait_until

NSYS = r'''#!/usr/bin/env python3
import os, shutil, subprocess, sys
arguments = sys.argv[1:]
if arguments[:1] == ["profile"] and "--help" not in arguments:
    program = next(i for i, word in enumerate(arguments[1:], 1) if not word.startswith("-"))
    code = subprocess.run(arguments[program:]).returncode
    report = next(word.split("=", 1)[1] for word in arguments if word.startswith("--output="))
    if os.environ.get("DOUBLE_MODE") == "raw":
        open(os.environ["TMPDIR"] + "/nsys-report-4711.qdstrm", "w").write("a raw stream")
        print("Importer error status: An unknown error occurred.")
        sys.exit(1)
    open(report, "w").write("a report")
    print("Generated:\n    " + report)
    sys.exit(code)
if arguments[:1] == ["export"]:
    shutil.copy(RECORDING, next(word.split("=", 1)[1] for word in arguments if word.startswith("--output=")))
    sys.exit(0)
sys.exit(subprocess.run([REAL_NSYS, *arguments]).returncode)
'''

NCU = r'''#!/usr/bin/env python3
import json, os, shutil, subprocess, sys, time
arguments = sys.argv[1:]
if "--export" not in arguments:
    sys.exit(subprocess.run([REAL_NCU, *arguments]).returncode)
report = arguments[arguments.index("--export") + 1]
program = arguments[arguments.index("--export") + 2:]
with open(SEEN, "a") as seen:
    seen.write(json.dumps(arguments) + "\n")
real = subprocess.run([REAL_NCU, *arguments[:-len(program)], "/bin/true"], capture_output=True, text=True)
if real.returncode != 0:
    print(real.stdout + real.stderr)
    sys.exit(real.returncode)
print("==PROF== Connected to process 4711", flush=True)
mode = os.environ.get("DOUBLE_MODE", "ok")
if mode == "nothing":
    print("==WARNING== No kernels were profiled.")
    sys.exit(0)
if mode == "forbidden":
    print("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters")
    sys.exit(1)
code = subprocess.run(program).returncode
print('==PROF== Profiling "kernel" - 0: 0%....50%....100% - 9 passes', flush=True)
shutil.copy(REPORT, report)
if mode == "hang":
    time.sleep(600)
print("==PROF== Report: " + report)
sys.exit(code)
'''


def double(path, text, **values):
    head, rest = text.split("\n", 1)
    path.write_text("\n".join([head, *(f"{name} = {value!r}" for name, value in values.items()), rest]))
    path.chmod(0o755)
    return str(path)


def recorded_report(corpus):
    """A report of a real ncu: of the corpus, or of the examples that come with Nsight Compute. None: neither is here."""
    folders = (corpus / "ncu_rep", pathlib.Path("/usr/share/doc/nsight-compute"), pathlib.Path("/opt/nvidia/nsight-compute"))
    return next((path for folder in folders for path in sorted(folder.rglob("*.ncu-rep"))), None)


def main():
    arguments = testing.arguments("program", "workload", "make-trace", "corpus")
    if not shutil.which("nsys") or not shutil.which("ncu"):
        testing.skip("nsys and ncu are not installed (tools/install-deps.sh nsight)")
    report = recorded_report(pathlib.Path(arguments.corpus))
    if report is None:
        testing.skip("neither the corpus nor the examples of Nsight Compute are here: no report to deliver")
    runner = Runner(arguments.program, arguments.workload)
    tools = runner.directory / "tools"
    tools.mkdir()
    recording = tools / "made.sqlite"
    subprocess.run([arguments.make_trace, recording, "20000"], check=True, stdout=subprocess.DEVNULL)
    seen = tools / "seen"
    environment = {
        "GPUWHY_NSYS": double(tools / "nsys", NSYS, RECORDING=str(recording), REAL_NSYS=shutil.which("nsys")),
        "GPUWHY_NCU": double(tools / "ncu", NCU, REPORT=str(report), SEEN=str(seen), REAL_NCU=shutil.which("ncu"))}
    # The made recording is of another program: what the baseline pass saw of stages is not in it.
    passes = ["--passes", "nsys,ncu", "run.top_n_kernels=3"]
    try:
        run = runner.run(*passes, **environment)
        assert run.code == 0, run
        plan = run.json("ncu/plan.json")
        commands = [json.loads(line) for line in seen.read_text().splitlines()]
        assert plan["kernels"] and len(plan["kernels"]) <= 3 and len(commands) == len(plan["commands"]), plan
        for planned, argv in zip(plan["commands"], commands):
            assert argv[argv.index("--launch-skip") + 1] == str(planned["launch_skip"]), argv
            assert argv[argv.index("--launch-count") + 1] == str(planned["launch_count"]), argv
            assert argv[argv.index("--target-processes") + 1] == "all"
            assert ("--nvtx-include" in argv) == bool(planned["stages"]), argv
        delivered = sorted((run.bundle / "ncu").glob("*.ncu-rep"))
        assert len(delivered) == len(commands) and all(d.read_bytes() == report.read_bytes() for d in delivered)
        for name in ("ncu/cmd.txt", "ncu/log.txt", "ncu/sections.txt"):
            assert (run.bundle / name).stat().st_size > 0, name
        assert run.step("ncu")["status"] == "done" and "==PROF==" in (run.bundle / "ncu/log.txt").read_text()

        hung = runner.run(*passes, "run.ncu_no_progress_s=3", DOUBLE_MODE="hang", **environment)
        assert hung.code == 7 and "no_progress" in hung.findings(), hung
        assert hung.step("ncu")["steps"][-1]["ended_by"] == "no_progress"
        assert list((hung.bundle / "ncu").glob("*.ncu-rep")), "the partial report is kept"
        nothing = runner.run(*passes, DOUBLE_MODE="nothing", **environment)
        assert nothing.code == 7 and "no_kernels_profiled" in nothing.findings(), nothing
        assert len(nothing.step("ncu")["steps"]) == len(plan["commands"]), "nothing is run again without its filter"
        forbidden = runner.run(*passes, DOUBLE_MODE="forbidden", **environment)
        assert forbidden.code == 5 and "counter_permission" in forbidden.findings(), forbidden
        assert forbidden.step("nsys")["status"] == "done" and (forbidden.bundle / "kernels.md").exists()

        raw = runner.run("--passes", "nsys", DOUBLE_MODE="raw", **environment)
        assert raw.code == 5 and "importer_failed" in raw.findings(), raw
        assert (raw.bundle / "nsys/nsys-report-4711.qdstrm").read_text() == "a raw stream", "it is kept for another importer"

        # Killed in the ncu pass: the same as in the others, see run_kill.py.
        before = set(runner.directory.iterdir())
        killed = subprocess.Popen(runner.argv(*passes), env={**os.environ, **environment, "DOUBLE_MODE": "hang"},
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        bundle = wait_until(lambda: next((p for p in set(runner.directory.iterdir()) - before
                                          if list((p / "ncu").glob("*.ncu-rep"))), None))
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
        left = processes_of(bundle)
        check = leftovers(runner)
        assert left and check["status"] == "WARN" and str(bundle) in check["finding"], (left, check)
        assert all(str(pid) in check["remedy"] for pid, _ in left), (left, check)
        assert not (bundle / "manifest.json").exists()
        end(pid for pid, _ in left)
        shutil.rmtree(bundle)

        again = runner.run("--passes", "ncu", "--plan", str(run.bundle), "run.top_n_kernels=3", **environment)
        assert again.code == 0 and again.json("ncu/plan.json")["kernels"] == plan["kernels"], again
    finally:
        runner.close()
    return 0


if __name__ == "__main__":
    guarded(main)
