#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a bundle says of the program that made it, and `gpuwhy run --like BUNDLE`.

env.json is compared with what the program says of itself: importlib.metadata and /proc/self/maps from inside, .git read by hand.
"""
import json
import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys
import time

import testing

KEY = "hf_" + "aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0z"

WORK = """
import ctypes, importlib.metadata, json, pathlib, platform, sys, time
folder = pathlib.Path(__file__).parent
libraries = [ctypes.CDLL(str(path)) for path in sorted((folder / "lib").iterdir())]
with open(folder / "told.json", "w") as told:
    json.dump({"packages": {d.metadata["Name"]: d.version for d in importlib.metadata.distributions()}, "argv": sys.argv,
               "python": platform.python_version(), "maps": pathlib.Path("/proc/self/maps").read_text()}, told)
with open(folder / "runs.txt", "a") as runs:
    runs.write("run\\n")
time.sleep(1)
"""


def plant(folder):
    """A virtual environment with packages, a program with libraries, and its repository."""
    site = folder / f"venv/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    for name, version in (("torch", "2.5.1+cu124"), ("Detect_Secrets", "1.5.0"), ("frobnicator", "0.0.1rc1")):
        info = site / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (folder / "venv/bin").mkdir()
    interpreter = pathlib.Path("/proc/self/exe").resolve()
    (folder / "venv/bin/python").symlink_to(interpreter)
    (folder / "venv/pyvenv.cfg").write_text(f"home = {interpreter.parent}\ninclude-system-site-packages = false\n")
    source = folder / "source"
    (source / "lib").mkdir(parents=True)
    (source / "work.py").write_text(WORK)
    library = next(line.split()[-1] for line in pathlib.Path("/proc/self/maps").read_text().splitlines() if re.search(r"/libm\.so", line))
    for name in ("libcudart.so.12.4.127", "libnccl.so.2.21.5"):
        shutil.copy(library, source / "lib" / name)
    return source


def git(folder, *words):
    subprocess.run(["git", "-C", folder, "-c", "user.name=x", "-c", "user.email=x@x", *words], check=True, capture_output=True)


def commit_by_hand(repository):
    head = (repository / ".git/HEAD").read_text().strip()
    return (repository / ".git" / head.removeprefix("ref: ")).read_text().strip()


class Bench:
    def __init__(self, program, folder):
        self.program, self.folder, self.source = program, folder, plant(folder)
        self.python = str(folder / "venv/bin/python")
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": str(folder), "OMP_NUM_THREADS": "3", "VLLM_API_KEY": KEY}

    def gpuwhy(self, *words, **more):
        return subprocess.run([self.program, *words], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
                              **{"env": self.environment, "cwd": self.folder, **more})

    def bundle(self, *words):
        result = self.gpuwhy("run", *words)
        assert result.returncode == 0, (words, result)
        assert result.stdout.count("\n") == 1, result.stdout
        return self.folder / result.stdout.strip(), result

    def runs(self):
        return (self.source / "runs.txt").read_text().count("run")


def normal(name):
    return re.sub("[-_.]+", "-", name).lower()


def check_environment(bench, bundle, is_dirty):
    env = json.loads((bundle / "env.json").read_text())
    told = json.loads((bench.source / "told.json").read_text())
    line = bench.gpuwhy("--version").stdout.splitlines()[0]  # gpuwhy 0.1.0 (commit 1a2b3c4)
    commit = re.search(r"\(commit (.*)\)", line)
    ours = {"version": line.split()[1], "commit": commit[1] if commit else None}
    assert env["gpuwhy"] == ours and json.loads((bundle / "manifest.json").read_text())["run"]["gpuwhy"] == ours, (env["gpuwhy"], ours)

    program = env["program"]
    assert program["seen_running"] and program["path"] == bench.python, program
    assert program["python"] == told["python"], (program["python"], told["python"])
    packages = {row["name"]: row["version"] for row in program["packages"]}
    assert packages == {normal(name): version for name, version in told["packages"].items()}, (packages, told["packages"])
    assert packages["detect-secrets"] == "1.5.0" and program["torch"] == "2.5.1+cu124", program
    mapped = {pathlib.Path(line.split()[-1]).name for line in told["maps"].splitlines() if "/lib" in line}
    libraries = {row["name"]: row["version"] for row in program["libraries"]}
    for name, version in {"libcudart": "12.4.127", "libnccl": "2.21.5"}.items():
        assert f"{name}.so.{version}" in mapped and libraries[name] == version, (libraries, mapped)
    assert program["cuda_runtime"] == "12.4.127" and program["engine"] is None and program["reasons"]["engine"], program
    if shutil.which("git"):
        assert program["git"]["commit"] == commit_by_hand(bench.source) and program["git"]["dirty"] is is_dirty, program["git"]
    else:
        assert program["git"]["commit"] is None and program["git"]["reason"], program["git"]
    assert KEY not in (bundle / "env.json").read_text()


def config_of(bundle):
    return (bundle / "config.yaml").read_text()


def inputs_of(bundle):
    """The text of each key of inputs.yaml."""
    parts = re.split(r"^(\w+):", (bundle / "inputs.yaml").read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def check_again(bench, bundle, *more):
    """Shown, not run; then run, with the same configuration and the same call."""
    runs = bench.runs()
    shown = bench.gpuwhy("run", "--like", str(bundle))
    assert shown.returncode == 2 and shown.stdout == "" and "nothing was started" in shown.stderr, shown
    dry = bench.gpuwhy("run", "--like", str(bundle), "--dry-run")
    assert dry.returncode == 0 and "# baseline" in dry.stdout, dry
    assert bench.runs() == runs, "it ran without being asked to"
    again, result = bench.bundle("--like", str(bundle), "--yes", *more)
    assert again != bundle and bench.runs() == runs + 1, result
    assert config_of(again) == config_of(bundle), (config_of(again), config_of(bundle))
    for key in ("command", "model", "manifest", "files"):
        assert inputs_of(bundle)[key] == inputs_of(again)[key], (key, inputs_of(bundle), inputs_of(again))
    # The command that is shown does the same without --like.
    line = shown.stderr.split("Command:\n  ")[1].splitlines()[0]
    typed = subprocess.run(["sh", "-c", line.replace("gpuwhy", f"'{bench.program}'", 1)], capture_output=True, text=True, cwd=bench.folder,
                           env=bench.environment, timeout=120)
    assert typed.returncode == 0 and config_of(bench.folder / typed.stdout.strip()) == config_of(bundle), typed
    return shown.stderr


def check_differences(bench, bundle):
    site = next((bench.folder / "venv/lib").glob("*/site-packages"))
    (site / "torch-2.5.1+cu124.dist-info").rename(site / "torch-2.6.0.dist-info")
    (bench.source / "model.gguf").rename(bench.source / "gone.gguf")
    environment = {**bench.environment, "OMP_NUM_THREADS": "4"}
    del environment["VLLM_API_KEY"]
    said = bench.gpuwhy("run", "--like", str(bundle), env=environment).stderr
    for line in (f"file {bench.source / 'model.gguf'}", "environment.VLLM_API_KEY", "environment.OMP_NUM_THREADS: 3 then, 4 here",
                 "program.packages.torch: 2.5.1+cu124 then, 2.6.0 here"):
        assert f"\n  {line}\n" in said, (line, said)
    if shutil.which("git"):
        assert "program.git.dirty: false then, true here" in said, said
    (bench.source / "gone.gguf").rename(bench.source / "model.gguf")
    (site / "torch-2.6.0.dist-info").rename(site / "torch-2.5.1+cu124.dist-info")


def check_scrubbed(bench):
    bundle, _ = bench.bundle("--passes", "baseline", f"workload.environment.MY_API_KEY={KEY}", "--", bench.python, str(bench.source / "work.py"), "--token", KEY)
    runs = bench.runs()
    refused = bench.gpuwhy("run", "--like", str(bundle), "--yes")
    assert refused.returncode == 2 and "was scrubbed" in refused.stderr and KEY not in refused.stderr and bench.runs() == runs, refused
    again, _ = bench.bundle("--like", str(bundle), "--yes", f"workload.environment.MY_API_KEY={KEY}", "--", bench.python,
                            str(bench.source / "work.py"), "--token", KEY)
    assert json.loads((bench.source / "told.json").read_text())["argv"][-1] == KEY
    assert config_of(again) == config_of(bundle)


def check_question(bench, bundle):
    """On a terminal it asks: only yes starts it."""
    for answer, code, num_runs in (("n", 2, 0), ("", 2, 0), ("y", 0, 1)):
        runs = bench.runs()
        leader, follower = pty.openpty()
        process = subprocess.Popen([bench.program, "run", "--like", str(bundle)], stdin=follower, stdout=subprocess.PIPE, stderr=follower,
                                   env={**bench.environment, "TERM": "xterm"}, cwd=bench.folder)
        os.close(follower)
        said = b""
        until = time.monotonic() + 60
        try:
            while b"Run it?" not in said and time.monotonic() < until:
                said += os.read(leader, 65536)
            os.write(leader, answer.encode() + b"\n")
            while more := os.read(leader, 65536):
                said += more
        except OSError:
            pass  # the other end is closed
        assert process.wait(60) == code and bench.runs() == runs + num_runs, (answer, said)
        process.stdout.close()
        os.close(leader)


def check_strangers(bench, bundle):
    """Words that gpuwhy does not write into a bundle are refused, and none of it reaches the terminal as it is."""
    inputs = {"command": ["x"], "files": []}
    runs = bench.runs()
    evil = bench.folder / "evil"
    shutil.copytree(bundle, evil)
    program = ["--", bench.python, str(bench.source / "work.py")]
    for arguments, code in ((["--yes", *program], 2), (["--like", str(bundle), *program], 2), (["--help"], 2), (["--progress", "none", *program], 2), (["--config", "own.yaml", *program], 2),
                            ([], 2), ([1, {"a": 2}], 1), ("--yes", 1), (None, 1), (["--out", "/nonexistent", "\x1b]0;x\x07", *program], 2)):
        (evil / "inputs.yaml").write_text(json.dumps({**inputs, "arguments": arguments}))
        for more in ([], ["--yes"] if arguments != ["--out"] else []):
            result = bench.gpuwhy("run", "--like", str(evil), *more)
            assert result.returncode == code and "\x1b" not in result.stderr and result.stdout == "", (arguments, result)
    (evil / "inputs.yaml").write_text(json.dumps({**inputs, "files": ["/gone/\x1b[2J"], "arguments": ["--passes", "baseline", *program, "\x1b[2J\n$(x)"]}))
    result = bench.gpuwhy("run", "--like", str(evil))
    assert result.returncode == 2 and "\x1b" not in result.stderr and "\\x1b[2J\\x0a$(x)'" in result.stderr, result
    (evil / "inputs.yaml").write_text(json.dumps({**inputs, "arguments": ["--out", "/a", "artifacts.dir=/b", "+artifacts.stage2_dir=/c", *program]}))
    result = bench.gpuwhy("run", "--like", str(evil))
    assert result.returncode == 2 and "++run.passes" in result.stderr and not re.search(r"/[abc]\b|artifacts", result.stderr), result
    for name in ("config.yaml", "env.json", "manifest.json", "inputs.yaml"):
        text = (evil / name).read_text()
        for damage, code in (("[1, 2", 1), ('"x"', 1), (None, 2)):
            (evil / name).unlink() if damage is None else (evil / name).write_text(damage)
            result = bench.gpuwhy("run", "--like", str(evil))
            assert result.returncode in (code, 2) and result.stdout == "" and "gpuwhy: " in result.stderr, (name, damage, result)
        (evil / name).write_text(text)
    for more in (["--passes", "nsys"], ["--repeat", "3"], ["--server", "x"], ["--against", "run.mode=light"], ["--config", "x.yaml"]):
        result = bench.gpuwhy("run", "--like", str(bundle), "--yes", *more)
        assert result.returncode == 2 and "--like takes" in result.stderr, (more, result)
    assert bench.runs() == runs


def main():
    asked = testing.arguments("program", "workload")
    with testing.scratch() as folder:
        bench = Bench(asked.program, folder)
        (bench.source / "model.gguf").write_text("weights")
        if shutil.which("git"):
            git(bench.source, "init", "--quiet")
            git(bench.source, "add", "work.py")
            git(bench.source, "commit", "--quiet", "-m", "x")
        (folder / "own.yaml").write_text("run:\n  mode: light\n  timeout_s: 77\nworkload:\n  environment:\n    X: it's one\n")
        command = [bench.python, str(bench.source / "work.py"), f"--model={bench.source / 'model.gguf'}", "a b", "it's"]
        bundle, _ = bench.bundle("--passes", "baseline", "--config", "own.yaml", "+note.of=me", "run.ncu_budget_s=9", "--", *command)
        check_environment(bench, bundle, False)
        (folder / "own.yaml").unlink()
        said = check_again(bench, bundle)
        assert "Missing here" not in said and "Different" not in said and "Scrubbed" not in said, said

        (bench.source / "work.py").write_text(WORK + "\n# changed\n")
        check_differences(bench, bundle)
        dirty, _ = bench.bundle("--passes", "baseline", "-o", "elsewhere", "--", "sh", "-c", f"true; {bench.python} {bench.source / 'work.py'}")
        env = json.loads((dirty / "env.json").read_text())
        assert env["program"]["path"] == bench.python, "what a launcher starts is the program"
        script = f"PATH={folder}/venv/bin:$PATH; python {bench.source / 'work.py'}"
        activated, _ = bench.bundle("--passes", "baseline", "--", "sh", "-c", script)
        assert json.loads((activated / "env.json").read_text())["program"]["path"] == bench.python
        check_environment(bench, bench.bundle("--passes", "baseline", "--", *command)[0], True)
        check_scrubbed(bench)
        check_question(bench, bundle)
        check_strangers(bench, bundle)

        # A program without Python, beside which there are packages.
        native, _ = bench.bundle("--passes", "baseline", "--", "sleep", "0.5")
        program = json.loads((native / "env.json").read_text())["program"]
        assert program["path"] == shutil.which("sleep", path=bench.environment["PATH"]) and program["seen_running"], program
        assert program["python"] is None and program["reasons"]["python"] and program["packages"] == [], program
        # One that marks stages, and ends at once.
        marked, _ = bench.bundle("--passes", "baseline", "--", str(pathlib.Path(asked.workload).resolve()))
        again, _ = bench.bundle("--like", str(marked), "--yes")
        assert config_of(again) == config_of(marked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
