#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpuwhy run with the real nsys, without a GPU: every way a capture goes wrong has its reason, sentence, next command
and exit code, and none exits 0 with an empty bundle."""
import argparse
import functools
import csv
import json
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import sys

from runs import Runner, each, processes_of, wait_until, wait_while


REPORTS = ("kernels.md", "operators.md", "report.html", "report.md", "stakeholder_summary.md")
SECTIONS = ("Executive Summary", "Recommendations", "Environment", "Per-Stage Timings", "MFU", "Top Operators", "Top Kernels")


def expect_report(run):
    """However a run ends, its bundle has every file and section, with reasons for what is empty."""
    for name in ("metrics.json", *REPORTS):
        assert (run.bundle / name).stat().st_size > 0, (name, str(run))
    summary = (run.bundle / "stakeholder_summary.md").read_text()
    assert all(f"## {section}\n" in summary for section in SECTIONS), summary
    source = pathlib.Path(__file__).parents[2]
    fits = subprocess.run([sys.executable, source / "tests/check_schema.py", "--source", source, run.bundle / "metrics.json"],
                          capture_output=True, text=True)
    assert fits.returncode in (0, 77), fits.stdout + fits.stderr
    report = (run.bundle / "report.md").read_text()
    for link in [line[3:line.index("]")] for line in report.splitlines() if line.startswith("- [")]:
        assert (run.bundle / link).is_file(), link


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def check_whole(runner):
    """The bundle has the stage times of both passes, equal to those in their files."""
    run = runner.run()
    assert run.code == 0, run
    for name in ("manifest.json", "env.json", "config.yaml", "inputs.yaml", "baseline/ranges.csv", "baseline/metrics.json",
                 "baseline/log.txt", "nsys/cmd.txt", "nsys/log.txt", "nsys/run.nsys-rep", "nsys/run.sqlite",
                 "metrics.json", *REPORTS, "kernels.pb.gz"):
        assert (run.bundle / name).stat().st_size > 0, name
    assert not (run.bundle / "running.json").exists()
    assert not (run.bundle / "trace.pftrace").exists() and f"gpuwhy export {run.bundle}" in run.err, run
    expect_report(run)
    # It sleeps for 30 ms; a busy machine makes more of it.
    ttft_ms = run.json("metrics.json")["aggregates"]["ttft"]["p50_ns"] / 1e6
    assert ttft_ms >= 30, ttft_ms
    said = re.search(r"The first token comes after ([\d.]+) ms", (run.bundle / "stakeholder_summary.md").read_text())
    assert said and abs(float(said[1]) - ttft_ms) < 0.01 * ttft_ms, (said, ttft_ms)
    assert run.step("ncu")["status"] == "skipped" and run.step("ncu")["reason"] == "no_gpu"

    rows = list(csv.DictReader((run.bundle / "baseline/ranges.csv").open()))
    steps = [int(r["duration_ns"]) for r in rows if r["name"] == "decode_step"]
    assert len(steps) == 20 and {r["domain"] for r in rows} == {"LLM"}, rows
    baseline = {s["stage"]: s for s in run.json("baseline/metrics.json")["stages"]}
    assert baseline["decode_step"]["n"] == 20 and baseline["prefill"]["n"] == 1
    assert abs(baseline["decode_step"]["mean_ns"] - mean(steps)) < 1
    assert baseline["prefill"]["tokens"] == 512 and baseline["decode_step"]["tokens"] == 20
    assert 30e6 <= baseline["prefill"]["mean_ns"] < 300e6, baseline["prefill"]

    with sqlite3.connect(run.bundle / "nsys/run.sqlite") as database:
        profiled = [row[0] for row in database.execute(
            "SELECT n.end - n.start FROM NVTX_EVENTS n LEFT JOIN StringIds s ON s.id = n.textId "
            "WHERE coalesce(n.text, s.value) = 'decode_step' ORDER BY n.start")]
    assert len(profiled) == 20, profiled
    overhead = {row["stage"]: row for row in run.json("metrics.json")["overhead"]}["decode_step"]
    assert abs(overhead["profiled_mean_ns"] - mean(profiled[1:])) < 1, overhead
    assert abs(overhead["baseline_mean_ns"] - mean(steps[1:])) < 1, overhead
    fraction = mean(profiled[1:]) / mean(steps[1:]) - 1
    if overhead["overhead_fraction"] is None:  # this time nsys seems to make it faster
        assert overhead["reason"] and fraction < 0.05, overhead
    else:
        assert abs(overhead["overhead_fraction"] - fraction) < 1e-9, overhead
        assert overhead["low_fraction"] <= fraction <= overhead["high_fraction"], overhead
    assert "Profiler overhead" in run.err and "decode_step" in run.err.split("Profiler overhead")[1], run
    assert subprocess.run([runner.program, "view", "--verify", run.bundle], capture_output=True).returncode == 0


def check_gates(runner):
    refused = runner.run("run.gate=LLM:nosuch")
    assert refused.code == 7 and "gate_not_fired" in refused.findings(), refused
    assert not (refused.bundle / "nsys/log.txt").exists(), "nsys was started for a gate that cannot fire"
    assert "LLM:" in refused.err, refused
    silent = runner.run("--passes", "nsys", "run.gate=LLM:nosuch")
    assert silent.code == 7 and "gate_not_fired" in silent.findings(), silent
    expect_report(silent)
    # What nsys itself answers here is not the same on every machine; the reason is.
    assert not (silent.bundle / "nsys/run.nsys-rep").exists(), silent
    assert "gpuwhy run --passes nsys" in silent.err and "run.gate=none -- " in silent.err, silent
    never = runner.run("--passes", "nsys", "run.gate=LLM:request", command=[runner.workload, "--no-ranges"])
    assert never.code == 7 and "gate_not_fired" in never.findings(), never
    for wrong, why in (("request@LLM", "swapped"), ("prefill:LLM", "swapped"), ("LLM:*", "wildcards"),
                       ("LLM:prefill,LLM:decode_all", "one range"), ("LLM:", "no name"), ("prefill", "no domain")):
        bad = runner.run(f"run.gate={wrong}")
        assert bad.code == 2 and why in bad.err and not bad.out, (wrong, str(bad))
    later = runner.run("run.gate=LLM:decode_all")
    assert later.code == 0, later
    threads = runner.run(command=[runner.workload, "--threads", "4"])
    assert threads.code == 0, threads
    plain = runner.run(command=[runner.workload, "--unregistered"])
    assert plain.code == 0 and plain.json("metrics.json")["stages"], plain
    start_end = runner.run(command=[runner.workload, "--start-end"])
    assert start_end.code == 0, start_end
    unmarked = runner.run(command=[runner.workload, "--no-ranges"])
    assert unmarked.code == 0 and not unmarked.findings()["no_marks"]["fatal"], unmarked


def check_ends(runner):
    failed = runner.run(command=[runner.workload, "--exit", "3"])
    assert failed.code == 7 and "code 3" in failed.findings()["workload_failed"]["sentence"], failed
    assert failed.step("nsys")["status"] == "skipped", "a program that fails bare is not run again"
    expect_report(failed)
    assert "code 3" in failed.json("metrics.json")["verdict"], failed
    assert failed.run_part()["workload_exit_code"] == 3
    date = failed.bundle.name.split("-")[0]  # YYYYMMDD
    assert failed.json("metrics.json")["capture"]["recorded"].startswith(f"{date[:4]}-{date[4:6]}-{date[6:]}"), failed
    forwarded = runner.run("--propagate-exit", command=[runner.workload, "--exit", "3"])
    assert forwarded.code == 3, forwarded
    allowed = runner.run("contract.workload_may_fail=true", command=[runner.workload, "--exit", "3"])
    assert allowed.code == 0 and (allowed.bundle / "nsys/run.nsys-rep").exists(), allowed
    assert allowed.step("nsys")["steps"][-1]["exit_code"] == 3
    crashed = runner.run("--passes", "nsys", command=[runner.workload, "--segfault"])
    assert crashed.code == 7 and "SIGSEGV" in crashed.findings()["workload_failed"]["sentence"], crashed
    assert (crashed.bundle / "metrics.json").exists(), "what was recorded before the crash is analysed"
    for _ in range(3):  # on a busy machine nsys has taken its events before the program ends
        lost = runner.run(command=[runner.workload, "--_exit"])
        if lost.code != 0:
            break
    assert lost.code == 7 and "dropped_events" in lost.findings(), lost
    window = runner.run("--passes", "nsys", "pipeline.nsys.duration_s=1", command=[runner.workload, "--hang"])
    assert window.code == 0 and window.step("nsys")["steps"][-1]["exit_code"] == 143, window


def check_children(runner):
    forked = runner.run(command=[runner.workload, "--fork-first"])
    finding = forked.findings().get("children_not_traced")
    assert forked.code == 7 and finding, forked
    assert "pipeline.nsys.trace_fork_before_exec=true -- " in forked.err, forked
    followed = runner.run("pipeline.nsys.trace_fork_before_exec=true", command=[runner.workload, "--fork-first"])
    assert followed.code == 0, followed
    # nsys does not know a domain that was made before the fork, whatever it is told.
    late = runner.run("pipeline.nsys.trace_fork_before_exec=true", command=[runner.workload, "--fork"])
    assert late.code == 7 and "children_not_traced" in late.findings(), late
    spawned = runner.run(command=[runner.workload, "--spawn"])
    assert spawned.code == 0, spawned
    replaced = runner.run(command=[runner.workload, "--exec"])
    assert "children_not_traced" not in replaced.findings(), replaced
    daemon = runner.run("--passes", "baseline", command=[
        "/bin/sh", "-c", "setsid sleep 600 & exec " + runner.workload])
    assert daemon.code == 0 and "sleep" in daemon.step("baseline")["steps"][-1]["left_over"][0], daemon


def check_limits(runner):
    hung = runner.run("--passes", "baseline,nsys", "run.timeout_s=2", "contract.workload_may_fail=true",
                      command=[runner.workload, "--hang"])
    assert hung.code == 7 and "timeout" in hung.findings(), hung
    assert hung.step("baseline")["steps"][-1]["ended_by"] == "timeout"
    deaf = runner.run("--passes", "nsys", "run.timeout_s=5",  # nsys alone takes two to start on a busy machine
                      command=[runner.workload, "--hang", "--ignore-sigterm"])
    assert deaf.code == 7 and "timeout" in deaf.findings(), deaf
    assert (deaf.bundle / "nsys/run.sqlite").exists(), "what was recorded is kept"
    large = runner.run("--passes", "nsys", "run.max_report_bytes=1000",
                       command=[runner.workload, "--steps", "100000"])
    assert not large.findings()["too_large"]["fatal"] and large.step("nsys")["steps"][-1]["ended_by"] == "too_large", large
    full = runner.run("--passes", "baseline", f"run.min_free_bytes={2**60}", command=[runner.workload, "--hang"])
    assert full.code == 7 and "disk_full" in full.findings(), full


def pending_signals(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return any(int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("SigPnd:", "ShdPnd:")))


def check_interrupts(runner):
    process = runner.start("--passes", "nsys", command=[runner.workload, "--hang"])
    wait_while(process, lambda: any(name == "gpuwhy_nvtx_wor" for _, name in processes_of(runner.newest()))
               if any(runner.directory.iterdir()) else False)
    # Its words come out when it has closed its ranges, and hangs.
    wait_while(process, lambda: "nvtx yes" in (runner.newest() / "nsys/log.txt").read_text())
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=250)
    assert process.returncode == 130, (out, err)
    bundle = pathlib.Path(out.strip())
    assert not processes_of(bundle) and (bundle / "manifest.json").exists()
    assert (bundle / "metrics.json").exists(), "what was recorded is analysed"
    process = runner.start("--passes", "baseline", command=[
        "/bin/sh", "-c", "trap '' INT TERM; sleep 600; sleep 600"])
    bundle = wait_until(lambda: next((p for p in sorted(runner.directory.iterdir(), reverse=True)
                                      if (p / "running.json").exists() and processes_of(p)), None))
    process.send_signal(signal.SIGINT)
    wait_until(lambda: not pending_signals(process.pid))  # else both count as one
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=250)
    step = json.loads((bundle / "manifest.json").read_text())["run"]["passes"][0]["steps"][-1]
    assert process.returncode == 130 and step["ended_by"] == "aborted", (out, err, step)
    assert not processes_of(bundle)


def check_contract(runner):
    vision = runner.run("contract.stages=[prefill, vision]", "--passes", "baseline")
    assert vision.code == 7 and "vision" in vision.findings()["stage_missing"]["sentence"], vision
    often = runner.run("contract.stages=[decode_step]", "contract.min_instances=20")
    assert often.code == 0, often
    # A mark that fits nothing was asked for and is not in the bundle.
    mistyped = runner.run("--mark", "answer=no-such-range")
    assert mistyped.code == 7 and "no-such-range" in mistyped.findings()["marks_incomplete"]["sentence"], mistyped
    if not shutil.which("nvidia-smi"):
        wanted = runner.run("contract.gpu=required")
        assert wanted.code == 5 and "no_gpu" in wanted.err and not wanted.out, wanted
    no_program = runner.run(command=["no-such-program-anywhere"])
    assert no_program.code == 2 and "PATH" in no_program.err, no_program
    tools = runner.directory / "tools"
    tools.mkdir()
    for name in ("sh", "sleep"):
        (tools / name).symlink_to(shutil.which(name))
    bare = runner.run(PATH=str(tools))
    assert bare.code == 5 and "tool_missing" in bare.findings(), bare
    assert bare.step("baseline")["status"] == "done" and bare.json("baseline/metrics.json")["stages"]
    blocked = runner.directory / "a-file"
    blocked.write_text("")
    nowhere = runner.run(f"artifacts.dir={blocked}/below")
    assert nowhere.code == 1 and "artifacts.dir" in nowhere.err, nowhere
    for name, words in (("unknown_set", ["pipeline.ncu.set=nosuch"]),
                        ("unknown_section", ["pipeline.ncu.sections=[SpeedOfLigth]"]),
                        ("unknown_metric", ["pipeline.ncu.metrics=[dram__bytez.sum]"])):
        unknown = runner.run(*words)
        assert unknown.code == 2 and name in unknown.err and not unknown.out, unknown
    assert "did you mean" in unknown.err, unknown


def check_neighbours(runner):
    """What lies around the run must not change it, and the run must not touch it."""
    folder = runner.directory / "a folder"
    folder.mkdir()
    (folder / "generate.py").write_text(f"open({str(folder / 'ran')!r}, 'w')")
    for words in (["doctor"], ["run", "--dry-run", "--", "/bin/true"]):
        subprocess.run([runner.program, *words], cwd=folder, capture_output=True, timeout=250)
    assert not (folder / "ran").exists(), "a script of the folder was run: nsys imports what it finds there"
    daemon = runner.run("--passes", "nsys", command=["/bin/sh", "-c", f"(setsid sleep 600 &); exec {runner.workload}"])
    assert daemon.code == 0, daemon  # without waiting for it: that takes longer than the runner waits
    forgotten = subprocess.run([runner.program, "run", "run.mode=light", "python3", "x.py"], capture_output=True, text=True)
    assert forgotten.returncode == 2 and "gpuwhy run run.mode=light -- python3 x.py" in forgotten.stderr, forgotten
    nothing = runner.run("--passes", "ncu")
    assert nothing.code == 7 and "nothing_captured" in nothing.findings(), nothing
    no_plan = runner.run("--plan", str(folder))
    assert no_plan.code != 0 and no_plan.bundle is None, no_plan
    script = folder / "script"
    script.write_text("echo hi\n")
    script.chmod(0o755)
    no_shebang = runner.run(command=[str(script)])
    assert no_shebang.code == 7 and "#!" in no_shebang.err and no_shebang.bundle, no_shebang


def check_secrets(runner):
    key = "hf_" + "q7Rk" * 9
    other = "Zr2LmVx9KpT4"
    # nsys writes down the environments of all processes that it sees.
    other_program = subprocess.Popen(["sleep", "600"], env={"DATABASE_CREDS": "xq81Zr", "SVC_PASSWORD": "p4sshead,p4sstail"})
    try:
        run = runner.run(command=["/bin/sh", "-c", f"echo token={key}; echo using $MY_API_KEY; exec {runner.workload}"],
                         HF_TOKEN=key, MY_API_KEY=other, UNNAMED_THING="plain-but-private-0815")
        assert run.code == 0 and not run.findings()["secrets_in_report"]["fatal"], run
        for path in run.bundle.rglob("*"):
            if path.is_file():
                contents = path.read_bytes()
                for secret in (key.encode(), other.encode(), b"plain-but-private-0815", b"xq81Zr", b"p4sshead", b"p4sstail"):
                    assert secret not in contents, (path, secret)
        assert not (run.bundle / "nsys/run.nsys-rep").exists()
        kept = runner.run("artifacts.keep_report=true", HF_TOKEN=key)
        report = kept.bundle / "nsys/run.nsys-rep"
        assert report.exists() and "secrets_in_report" not in kept.findings(), kept
        if b"DATABASE_CREDS=xq81Zr" not in report.read_bytes():
            print("this nsys does not write down the environments of other processes: nothing was shown for them")
    finally:
        other_program.kill()
        other_program.wait()


def check_own_nvtx_library(runner):
    """A program that brings its own NVTX library keeps it; here the library is another copy of ours."""
    folder = runner.directory / "own_nvtx_library"
    folder.mkdir()
    library = pathlib.Path(runner.program).parent / "libgpuwhy_nvtx.so"
    run = runner.run("--passes", "baseline", NVTX_INJECTION64_PATH=str(library), GPUWHY_NVTX_DIR=str(folder))
    assert run.code == 0 and list(folder.glob("*.nvtx")), run
    assert "NVTX_INJECTION64_PATH is set" in str(run.findings()["no_marks"]), run.findings()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--workload", required=True)
    parser.add_argument("--only")
    arguments = parser.parse_known_args()[0]
    if not shutil.which("nsys") or not shutil.which("ncu"):
        print("skipped: nsys and ncu are not installed (tools/install-deps.sh nsight)")
        return 77
    if "nvtx no" in subprocess.run([arguments.workload, "--steps", "1"], capture_output=True, text=True).stdout:
        print("skipped: the workload was built without NVTX headers")
        return 77
    runner = Runner(arguments.program, arguments.workload)
    try:
        return each({name[6:]: functools.partial(check, runner) for name, check in sorted(globals().items())
                     if name.startswith("check_") and (not arguments.only or arguments.only in name)})
    finally:
        runner.close()


if __name__ == "__main__":
    sys.exit(main())
