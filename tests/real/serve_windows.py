#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Windows of N steps or N seconds in `gpuwhy run --server`, on a playback server that speaks the profiling endpoints of vLLM and SGLang
and has TensorRT-LLM's variables. Its traces are made here, so the steps in them are known.

Steps under Nsight Systems need a GPU, where engines call cudaProfilerStart: here a script stands for nsys, and the real one must say
that nothing was recorded."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing
from leftovers import processes_in  # noqa: E402
from runs import each, wait_until  # noqa: E402
from serve import PLAYBACK, Serve, free_port, requests_of  # noqa: E402

MAKE_SQLITE = PLAYBACK.parent / "make_engine_trace.py"

NAMES = {"vllm": ("execute_context_1(64)_generation_0(0)", "execute_context_0(0)_generation_4(4)"),
         "sglang": ("step[EXTEND bs=1 toks=64]", "step[DECODE bs=4]"),
         "trtllm": ("[Executor] _forward_step 1: 1 ctx reqs, 0 gen reqs", "[Executor] _forward_step 2: 0 ctx reqs, 4 gen reqs")}
# It runs the program, writes a report when that ends, and "exports" a recording, of several ranks the rank's own. FAULT=N: rank N leaves none;
# FAULT=PATH: it fails to start, once, of several ranks the first.
NSYS = """#!{python}
import os, re, shutil, signal, subprocess, sys
words = sys.argv[1:]
if words[:1] == ["--version"]:
    print("NVIDIA Nsight Systems version 2024.5.1.113-245134619542v0")
elif words[:1] == ["export"]:
    rank = re.search("(-[0-9]+).nsys-rep", words[-1])
    shutil.copy({recording!r} + (rank[1] if rank else ""), next(word for word in words if word.startswith("--output="))[9:])
elif "--help" in words:
    print("--trace-fork-before-exec= --cuda-graph-trace= --wait=")
elif (words[:1] == ["profile"] and "/" in os.environ.get("FAULT", "") and not os.path.exists(os.environ["FAULT"])
      and os.environ.get("OMPI_COMM_WORLD_RANK", "0") == "0"):
    open(os.environ["FAULT"], "w").close()
    print("Agent launcher failed.")
    sys.exit(1)
elif words[:1] == ["profile"]:
    program = words.index({program!r})
    child = subprocess.Popen(words[program:])
    signal.signal(signal.SIGINT, lambda *_: child.send_signal(signal.SIGINT))
    child.wait()
    if os.environ.get("FAULT", "none") == os.environ.get("OMPI_COMM_WORLD_RANK"):
        sys.exit(1)
    with open(next(word for word in words if word.startswith("--output="))[9:], "w") as report:
        report.write("a report")
"""
# Starts its ranks on this machine, with Open MPI's variables. Where one fails the others go on, as srun's do.
MPIRUN = """#!{python}
import os, signal, subprocess, sys
ranks = [subprocess.Popen(sys.argv[3:], env={{**os.environ, "OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": sys.argv[2]}})
         for rank in range(int(sys.argv[2]))]
signal.signal(signal.SIGINT, lambda *_: [rank.send_signal(signal.SIGINT) for rank in ranks])
sys.exit(max(rank.wait() for rank in ranks))
"""


def make_program(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def make_trace(path, engine, prefill, decode):
    """A trace of PyTorch's profiler with this number of steps, a kernel in each."""
    events, at = [], 1000.0
    for number, name in enumerate([NAMES[engine][0]] * prefill + [NAMES[engine][1]] * decode):
        thread = {"ph": "X", "pid": 40, "tid": 40}
        events += [{**thread, "cat": "user_annotation", "name": name, "ts": at, "dur": 90.0, "args": {"External id": number}},
                   {**thread, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": at + 5, "dur": 5.0,
                    "args": {"correlation": number + 1}},
                   {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": at + 20, "dur": 50.0,
                    "args": {"device": 0, "stream": 7, "correlation": number + 1}}]
        at += 100
    path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}],
                                "traceEvents": events}))
    return path


def steps_of(run):
    return {stage["stage"]: stage["instances"] for stage in run.json("metrics.json")["stages"]}


def check_own_profilers(serve):
    """The pass `torch`: the flags and variables of each engine, its window, its files, and the number of steps in them."""
    log = serve.directory / "posts.txt"
    load = ("--requests", "125", "--output-tokens", "1")  # TensorRT-LLM's range ends at 120
    cases = {"vllm": ["/start_profile {}", "/stop_profile"], "trtllm": [],
             "sglang": ["/start_profile {}", "/stop_profile"]}
    steps = '"num_steps": 20, "max_iterations": 20'
    for engine, posts in cases.items():
        for number, code in ((20, 0), (5, 7)):
            log.unlink(missing_ok=True)
            trace = make_trace(serve.directory / "trace.json", engine, 2, number)
            run = serve.run("--passes", "torch", "--steps", "20", "--stage", "decode", f"workload={engine}", code=code, load=load,
                            server=("--log", log, "--trace", trace))
            assert steps_of(run) == {"prefill": 2, "decode": number}, (engine, steps_of(run))
            said = [line for line in log.read_text().splitlines() if "_profile" in line]
            body = f'{{{steps}, "profile_by_stage": true, "profile_stages": ["decode"]}}'
            assert said == [line.replace("{}", body) for line in posts], (engine, said)
            files = [path.name for path in (run.bundle / "torch/traces").iterdir()]
            assert len(files) == 1 and ("decode" in files[0]) == (engine != "trtllm"), files
            if code:
                finding = run.findings()["window_short"]
                assert finding["sentence"] == "20 steps of decode were asked for, and 5 are in the recording", finding
            # The bundle stands for its recording.
            again = subprocess.run([serve.program, "analyze", run.bundle, "--json"], capture_output=True, text=True)
            assert again.returncode == 0, again.stderr
        print(f"{engine}: 20 steps found by its own profiler, 5 told")
    commands = (run.bundle / "torch/cmd.txt").read_text()
    assert "--start-url" in commands and "--traces" in commands, commands


def check_seconds(serve, has_nsys):
    """A window in the middle of the load, with the real nsys."""
    passes = "baseline,nsys" if has_nsys else "baseline"
    load = ("--streams", "4", "--requests", "300", "--output-tokens", "20")
    run = serve.run("--passes", passes, "--after", "3", "--seconds", "2", load=load, server=("--token-ms", "6"))
    for name in passes.split(","):
        drive = run.json(f"{name}/drive.json")
        rows = requests_of(run.bundle / name / "requests.jsonl")
        assert len(rows) == 300, len(rows)
        sent, done = min(row["sent_ns"] for row in rows), max(row["done_ns"] for row in rows)
        opened, closed = drive["window_start_ns"], drive["window_end_ns"]
        # nsys takes its time to start, and the window is open when it has. A busy machine may need seconds for the client's start.
        assert sent + 0.5e9 < opened and opened + 2e9 <= closed < done, (sent, opened, closed, done)
    if has_nsys:
        recorded = run.json("metrics.json")["capture"]["duration_ns"]
        assert recorded < closed - opened + 20e9, (recorded, closed - opened)
    short = serve.run("--passes", "baseline" if not has_nsys else "nsys", "--seconds", "60", code=7 if has_nsys else 0)
    if has_nsys:
        assert "60 s were asked for, and the load ended after" in short.findings()["window_short"]["sentence"], short
    late = serve.run("--passes", "baseline", "--after", "60", code=7)
    assert "the load ended before the window opened" in late.findings()["window_failed"]["sentence"], late
    print(f"2 s, 3 s after the load began: {(closed - opened) / 1e9:.3f} s ({passes})")


def check_steps_under_nsys(serve, has_nsys):
    """The engine opens and closes the recording by cudaProfilerStart and Stop."""
    log, recording = serve.directory / "posts.txt", serve.directory / "steps.sqlite"
    subprocess.run([sys.executable, MAKE_SQLITE, recording, "--steps", "24"], check=True, stdout=subprocess.DEVNULL)
    os.environ["GPUWHY_NSYS"] = make_program(serve.directory / "nsys", NSYS.format(python=sys.executable, recording=str(recording),
                                                                                      program=sys.executable))
    try:
        for engine, number in (("vllm", 20), ("sglang", 20), ("trtllm", 20), ("trtllm", 90)):
            log.unlink(missing_ok=True)
            run = serve.run("--passes", "nsys", "--steps", str(number), f"workload={engine}", code=0 if number == 20 else 7,
                            server=("--log", log, "--profiler-config.profiler", "cuda"))
            command = (run.bundle / "nsys/cmd.txt").read_text()
            assert "--capture-range=cudaProfilerApi --capture-range-end=stop" in command and " start " not in command, command
            said = [line for line in log.read_text().splitlines() if "_profile" in line]
            body = f'{{"num_steps": {number}, "max_iterations": {number}, "activities": ["CUDA_PROFILER"]}}'
            assert said == ([] if engine == "trtllm" else [f"/start_profile {body}", "/stop_profile"]), (engine, said)
            assert ("--profiler-config.max_iterations 20" in command) == (engine == "vllm"), command
            assert number == 20 or "90 steps were asked for, and 24 are" in run.findings()["window_short"]["sentence"], run
        # Where nsys loses its agent, the server is started again.
        os.environ["FAULT"] = str(serve.directory / "failed once")
        run = serve.run("--passes", "nsys", "--steps", "20", "workload=trtllm")
        assert "trying again" in run.err and not run.findings().get("server_died"), run
    finally:
        os.environ.pop("FAULT", None)
        del os.environ["GPUWHY_NSYS"]
    if has_nsys:
        run = serve.run("--passes", "nsys", "--steps", "20", "workload=sglang", code=7, server=("--traces", serve.directory))
        assert "gate_not_fired" in run.findings(), run
        assert "window_failed" not in run.findings(), run
    print("steps under nsys: the recording opens and closes with cudaProfilerStart and Stop")


def check_ranks(serve, has_nsys):
    """A server that mpirun starts: an nsys around each rank, and one report of all."""
    recording = serve.directory / "ranks.sqlite"
    for rank in range(2):
        subprocess.run([sys.executable, MAKE_SQLITE, f"{recording}-{rank}", "--steps", "24", "--workers", "2", "--rank", str(rank)],
                       check=True, stdout=subprocess.DEVNULL)
    serve.launcher = (make_program(serve.directory / "mpirun", MPIRUN.format(python=sys.executable)), "-n", "2")
    os.environ["GPUWHY_NSYS"] = make_program(serve.directory / "nsys", NSYS.format(python=sys.executable, recording=str(recording),
                                                                                      program=sys.executable))
    try:
        run = serve.run("--passes", "baseline,nsys", "--steps", "20", "workload=trtllm")
        command = (run.bundle / "nsys/cmd.txt").read_text()
        assert "/mpirun -n 2 " in command and " rank -- " in command and "rank-{rank}.nsys-rep" in command, command
        assert "--capture-range=cudaProfilerApi" in command and command.index("mpirun") < command.index("--capture-range"), command
        assert {path.name for path in (run.bundle / "nsys").glob("rank-*")} == {f"rank-{rank}.{kind}" for rank in range(2)
                                                                                  for kind in ("nsys-rep", "sqlite")}, run
        # Both ranks mark each step, and it counts once.
        assert sum(steps_of(run).values()) == 24 and len(run.json("metrics.json")["devices"]) == 2, steps_of(run)
        os.environ["FAULT"] = "1"
        lost = serve.run("--passes", "nsys", "workload=trtllm", code=7)
        assert lost.findings()["gate_not_fired" if "gate_not_fired" in lost.findings() else "report_missing"]["sentence"].startswith(
            "rank 1: "), lost
        # Where nsys loses the agent of one rank, the others wait for it.
        os.environ["FAULT"] = str(serve.directory / "failed one rank")
        run = serve.run("--passes", "nsys", "--steps", "20", "workload=trtllm")
        assert "trying again" in run.err and len(list((run.bundle / "nsys").glob("rank-*.sqlite"))) == 2, run
    finally:
        os.environ.pop("FAULT", None)
        del os.environ["GPUWHY_NSYS"]
    if has_nsys:
        run = serve.run("--passes", "nsys")
        assert len(list((run.bundle / "nsys").glob("rank-*.sqlite"))) == 2, list((run.bundle / "nsys").iterdir())
    serve.launcher = ()
    print("mpirun -n 2: each rank has a recording of its own, joined in one report")


def check_refusals(serve):
    for words, sentence in ((("--steps", "5"), "does not count its steps"), (("--passes", "torch"), "no profiler of its own")):
        result = subprocess.run(serve.argv(*words, "--dry-run"), capture_output=True, text=True)
        assert result.returncode == 2 and sentence in result.stderr, result
    for words in (("--steps", "5"), ("--seconds", "5"), ("--after", "1"), ("--stage", "decode"), ("--passes", "torch")):
        result = subprocess.run([serve.program, "run", *words, "--", "true"], capture_output=True, text=True)
        assert result.returncode == 2 and "requires --server" in result.stderr, result


def check_attach(serve):
    """A server that runs already: the same windows, and a signal that ends the client and closes the window."""
    log, traces = serve.directory / "attach.txt", serve.directory / "attach"
    traces.mkdir()
    port = free_port()
    trace = make_trace(serve.directory / "trace.json", "sglang", 0, 20)
    server = subprocess.Popen([sys.executable, PLAYBACK, "--port", str(port), "--log", log, "--trace", trace, "--traces", traces,
                               "--token-ms", "5"], stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        attach = [serve.program, "attach", url, "--traces", traces, "-o", serve.directory / "report"]
        wait_until(lambda: subprocess.run([serve.program, "load", url, "--requests", "1", "-q"], capture_output=True).returncode == 0)
        for wanted, code in ((20, 0), (40, 7)):
            done = subprocess.run([*attach, "--steps", str(wanted), "--stage", "decode", "--seconds", "1"], capture_output=True, text=True,
                                  timeout=120)
            assert done.returncode == code and ("window_short: 40 steps of decode" in done.stderr) == bool(code), done
        for file in traces.iterdir():
            file.unlink()
        log.unlink()
        client = f"{serve.program} load {url} --requests 1000 --output-tokens 100 -q"
        process = subprocess.Popen([*attach, "--client", client], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_until(lambda: log.exists() and log.read_text().count("/v1/completions") > 4)
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=250)
        took = time.monotonic() - start
        assert process.returncode == 130 and log.read_text().split().count("/stop_profile") == 1, (process.returncode, said)
        clients = [pid for pid in processes_in(url) if pid != server.pid]
        assert not clients, f"the client goes on: {clients}"
        print(f"attach: a signal closes the window in {took:.1f} s")
    finally:
        server.kill()
        server.wait()


def main():
    arguments = testing.arguments("program")
    has_nsys = shutil.which("nsys") is not None
    with tempfile.TemporaryDirectory(prefix="gpuwhy-windows-") as directory:
        serve = Serve(arguments.program, pathlib.Path(directory) / "runs")
        serve.directory.mkdir()
        code = each({"refusals": lambda: check_refusals(serve), "own profilers": lambda: check_own_profilers(serve),
                     "attach": lambda: check_attach(serve), "steps": lambda: check_steps_under_nsys(serve, has_nsys),
                     "ranks": lambda: check_ranks(serve, has_nsys), "seconds": lambda: check_seconds(serve, has_nsys)})
    if not has_nsys:
        print("nsys is not installed (tools/install-deps.sh nsight): its windows were not tested")
    return code


if __name__ == "__main__":
    sys.exit(main())
