#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpuwhy run --server on a playback server, with the real nsys: a window of recording, load, failures, kill -9 of each process.

What must hold: a complete bundle only where the load was served, a reason code where it was not, and no process left."""
import json
import os
import pathlib
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

from runs import Run, end, guarded, processes_of, wait_until

PLAYBACK = pathlib.Path(__file__).resolve().parent.parent / "playback_server.py"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Serve:
    def __init__(self, program, directory):
        self.program, self.directory = program, pathlib.Path(directory)
        self.launcher = ()  # words before the server's

    def argv(self, *words, server=(), load=("--requests", "6", "--output-tokens", "20"), client=None):
        port = free_port()
        command = shlex.join([*self.launcher, sys.executable, str(PLAYBACK), "--port", str(port), *map(str, server)])
        client = client or shlex.join([self.program, "load", "{url}", "-o", "{requests}", *load])
        return [self.program, "run", "--progress", "plain", "-o", str(self.directory), "--server", command, "--ready",
                f"http://127.0.0.1:{port}/health", "--client", client, *words]

    def run(self, *words, code=0, **parts):
        argv = self.argv(*words, **parts)
        try:
            result = subprocess.run(argv, capture_output=True, text=True, timeout=240)
        except subprocess.TimeoutExpired as late:
            raise AssertionError(f"240 s: {argv}\n{(late.stdout or b'').decode()}\n{(late.stderr or b'').decode()}") from None
        run = Run(result.returncode, result.stdout, result.stderr)
        assert run.code == code, run
        assert run.bundle and not processes_of(run.bundle), (processes_of(run.bundle), str(run))
        return run


def requests_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def check_pass(run, name, expected):
    drive = run.json(f"{name}/drive.json")
    assert drive["failure"] == "" and 0 < drive["window_start_ns"] < drive["window_end_ns"], drive
    rows = requests_of(run.bundle / name / "requests.jsonl")
    assert len(rows) == expected, rows
    for row in rows:
        assert row["output_tokens"] == len(row["token_ns"]) == 20 and row["prompt_tokens"] == 128, row
        # The window holds all of the load, and nothing before it.
        assert drive["window_start_ns"] <= row["sent_ns"] < row["first_token_ns"] <= row["token_ns"][-1] <= row["done_ns"], row
        assert row["done_ns"] <= drive["window_end_ns"], (row, drive)
    return drive


def check_whole(serve, has_nsys):
    log = serve.directory / "posts.txt"
    passes = "baseline,nsys" if has_nsys else "baseline"
    run = serve.run("--passes", passes, "--warmup", shlex.join([serve.program, "load", "{url}", "--requests", "2", "-q"]),
                    "workload=vllm", server=("--log", log))
    check_pass(run, "baseline", 6)
    posts = log.read_text().split()
    if has_nsys:
        drive = check_pass(run, "nsys", 6)
        # The engine's own window is opened only under a profiler, inside nsys' window, after the warm-up.
        load = ["/v1/completions"]
        assert posts == load * 8 + load * 2 + ["/start_profile"] + load * 6 + ["/stop_profile"], posts
        recorded = run.json("metrics.json")["capture"]["duration_ns"]
        window = drive["window_end_ns"] - drive["window_start_ns"]
        assert recorded < window + 20e9, (recorded, window)
        assert (run.bundle / "nsys/run.nsys-rep").exists()
    else:
        assert posts == ["/v1/completions"] * 8, posts


def check_failures(serve):
    died = serve.run("--passes", "baseline", code=7, server=("--die-after", "3"))
    assert "server_died" in died.findings() and "exited with code 9 under load" in died.err, died
    never = serve.run("--passes", "baseline", "--ready-timeout", "2", code=7, server=("--slow-start", "60"))
    assert "server_not_ready" in never.findings(), never
    client = serve.run("--passes", "baseline", code=7, client="sh -c 'echo cannot connect >&2; exit 5'")
    assert "client_failed" in client.findings() and "cannot connect" in client.err, client
    missing = subprocess.run([serve.program, "run", "--client", "true", "--", "true"], capture_output=True, text=True)
    assert missing.returncode == 2 and "--ready" in missing.stderr, missing


def check_attach(serve, corpus):
    """A server that runs already. The traces are those of real engines where the corpus is here, else a fixture."""
    names = ("tracelens_vllm_decode_fullgraph", "tracelens_sglang_qwen3-8b_decode")
    real = [corpus / f"kineto/{name}.json.gz" for name in names] if corpus else []
    fixture = pathlib.Path(__file__).resolve().parent.parent / "golden/analyze-kineto/trace.json"
    for trace in real or [fixture]:
        port = free_port()
        with tempfile.TemporaryDirectory() as folder:
            traces, out = pathlib.Path(folder) / "traces", pathlib.Path(folder) / "report"
            traces.mkdir()
            (traces / "old.json").write_text("{}")
            server = subprocess.Popen([sys.executable, PLAYBACK, "--port", str(port), "--profiler-config.profiler", "torch",
                                       "--trace", trace, "--traces", traces])
            try:
                url = f"http://127.0.0.1:{port}"
                load = shlex.join([serve.program, "load", url, "--requests", "2", "-q"])
                wait_until(lambda: subprocess.run([serve.program, "load", url, "--requests", "1", "-q"],
                                                  capture_output=True).returncode == 0)
                done = subprocess.run([serve.program, "attach", url, "--traces", traces, "--client", load, "-o", out],
                                      capture_output=True, text=True, timeout=240)
                assert done.returncode == 0 and done.stderr.count("recorded ") == 1, done
                assert (out / "report.html").exists() and (out / "metrics.json").exists(), done
                # 20 steps, after which the server stops by itself; the trace has fewer, which is told.
                for file in traces.iterdir():
                    file.unlink()
                steps = subprocess.run([serve.program, "attach", url, "--traces", traces, "--steps", "20", "--seconds", "1", "-o",
                                        pathlib.Path(folder) / "steps"], capture_output=True, text=True, timeout=240)
                assert steps.returncode == 7 and steps.stderr.count("recorded ") == 1 and "window_short" in steps.stderr, steps
                print(f"attach: {trace.name} analyzed")
            finally:
                server.kill()
                server.wait()
    refused = subprocess.run([serve.program, "attach", f"http://127.0.0.1:{free_port()}", "--traces", "/tmp"],
                             capture_output=True, text=True)
    assert refused.returncode == 5 and "POST" in refused.stderr, refused


def killed(serve, who, when):
    """Kills one process while the server starts or serves, and waits until nothing is left."""
    server = ("--slow-start", "3") if when == "start" else ("--token-ms", "100")
    warmup = ("--warmup", shlex.join([serve.program, "load", "{url}", "--requests", "50", "--quiet"])) if when == "warmup" else ()
    process = subprocess.Popen(serve.argv("--passes", "baseline", *warmup, server=server), stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    wanted = {"server": "playback_server", "client": " load ", "drive": " drive ", "gpuwhy": None}[who]

    def command_of(pid):
        try:
            return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            return ""

    def find():
        for bundle in serve.directory.iterdir():
            if not (bundle / "running.json").exists():
                continue
            commands = {pid: command_of(pid) for pid, _ in processes_of(bundle)}
            is_loaded = any(" load " in text and " drive " not in text for text in commands.values())
            is_started = any("playback_server" in text and " drive " not in text for text in commands.values())
            if not (is_started if when == "start" else is_loaded):
                continue
            if wanted is None:
                return bundle, process.pid
            for pid, text in commands.items():
                if wanted in text and (wanted == " drive " or " drive " not in text):
                    return bundle, pid
        return None

    try:
        bundle, pid = wait_until(find)
        os.kill(pid, signal.SIGKILL)
        err = process.communicate(timeout=250)[1]
        wait_until(lambda: not processes_of(bundle))
        if who == "gpuwhy":
            listed = subprocess.run([serve.program, "view", "--files", bundle], capture_output=True, text=True)
            assert listed.returncode != 0 and "did not finish" in listed.stderr, listed
        else:
            assert process.returncode == 7, (who, when, process.returncode, err)
        shutil.rmtree(bundle)
    finally:
        end([process.pid])


def main():
    arguments = testing.arguments("program")
    has_nsys = shutil.which("nsys") is not None
    with tempfile.TemporaryDirectory(prefix="gpuwhy-serve-") as directory:
        serve = Serve(arguments.program, directory)
        check_failures(serve)
        for who, when in (("server", "start"), ("server", "warmup"), ("server", "load"), ("client", "warmup"), ("client", "load"),
                          ("drive", "start"), ("drive", "warmup"), ("drive", "load"), ("gpuwhy", "start"), ("gpuwhy", "warmup"),
                          ("gpuwhy", "load")):
            killed(serve, who, when)
            print(f"kill -9 of {who} during {when}: nothing left")
        check_whole(serve, has_nsys)
        corpus = pathlib.Path(arguments.corpus) if arguments.corpus else None
        check_attach(serve, corpus if corpus and corpus.is_dir() else None)
    if not has_nsys:
        print("nsys is not installed (tools/install-deps.sh nsight): its window was not tested")
    return 0


if __name__ == "__main__":
    guarded(main)
