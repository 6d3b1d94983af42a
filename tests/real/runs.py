# SPDX-License-Identifier: Apache-2.0
"""Shared parts of the tests of `gpuwhy run`; not a test itself."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

# What nsys says when it loses its own agent, before it starts any program. gpuwhy tries again twice. With the full stop: doctor quotes it.
AGENT_WORDS = ("Agent launcher failed.", "Local Endpoint is not available", "errinfo_api_function_*] = sem_open",
               "nsys exited with code 1 and wrote no report; the last line it printed: Connection reset by peer")

AGENT_LINES = ("End of file", "Connection reset by peer")  # whole lines


class AgentFailed(Exception):
    """nsys itself failed, so a promise of gpuwhy was not put to the test."""


def agent_failed(*said):
    """The line by which nsys says so, or an empty one."""
    lines = "\n".join(map(str, said)).replace("\\n", "\n").splitlines()  # also of a tuple, as it is printed
    # On a loaded machine its agent comes late and misses the range that opens the recording. On a quiet one that is our fault.
    missed = ("nsys missed it, or the program",) if os.getloadavg()[0] > 2 * os.cpu_count() else ()
    return next((line.strip() for line in lines
                 if line.strip() in AGENT_LINES or any(words in line for words in AGENT_WORDS + missed)), "")


def each(checks):
    """Runs checks, {name: function}, all of them. Returns the exit code: 77 where nsys' agent left some unexercised, which is said."""
    code = 0
    for name, check in checks.items():
        start = time.time()
        try:
            check()
        except (AgentFailed, AssertionError, RuntimeError, subprocess.CalledProcessError) as error:
            line = agent_failed(error, getattr(error, "stdout", ""), getattr(error, "stderr", ""))
            if not isinstance(error, AgentFailed) and not line:
                raise
            test = pathlib.Path(sys.argv[0]).stem
            print(f"not exercised: {'manual' if test.startswith('manual') else 'real'}.{test}: {name}: nsys lost its own agent"
                  f" ({line[:200]})\n{str(error)[-3000:]}")
            code = 77
        print(f"{name}: {time.time() - start:.1f} s")
    return code


def guarded(main):
    """A test as a whole, ended as skipped where nsys' own agent failed."""
    codes = []
    code = each({"all of it": lambda: codes.append(main())})
    sys.exit(code or codes[0])


class Run:
    """One `gpuwhy run`, ended: its exit code, words, and bundle (None where there is none)."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err
        path = pathlib.Path(out.strip().splitlines()[-1]) if out.strip() else None
        self.bundle = path if path and path.is_dir() else None

    def json(self, name):
        return json.loads((self.bundle / name).read_text())

    def run_part(self):
        return self.json("manifest.json")["run"]

    def findings(self):
        return {finding["reason"]: finding for finding in self.run_part()["contract"]["findings"]}

    def step(self, name):
        return next(p for p in self.run_part()["passes"] if p["pass"] == name)

    def __str__(self):
        return f"exit {self.code}\n--- out\n{self.out}\n--- err\n{self.err}"


class Runner:
    def __init__(self, program, workload):
        self.program, self.workload = program, workload
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="gpuwhy-run-"))
        self.started = []

    def argv(self, *words, command=()):
        options = [word for word in words]
        return [self.program, "run", "--progress", "plain", f"artifacts.dir={self.directory}", *options,
                "--", *(command or [self.workload])]

    def run(self, *words, command=(), timeout=250, **environment):
        return self.checked(self.argv(*words, command=command), timeout, **environment)

    def checked(self, argv, timeout=250, **environment):
        """Runs it; nothing it started may be left."""
        result = subprocess.run(argv, capture_output=True, text=True, timeout=timeout, env={**os.environ, **environment})
        run = Run(result.returncode, result.stdout, result.stderr)
        log = run.bundle / "nsys/log.txt" if run.bundle else None
        if log and "report_missing" in run.err and log.exists():
            run.err += f"--- nsys\n{log.read_text()}"
        if run.code and agent_failed(run.err):
            raise AgentFailed(run.err)
        if run.bundle:
            assert not processes_of(run.bundle), (processes_of(run.bundle), str(run))
        return run

    def start(self, *words, command=()):
        self.started.append(subprocess.Popen(self.argv(*words, command=command), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                             text=True))
        return self.started[-1]

    def newest(self):
        return max((p for p in self.directory.iterdir() if p.is_dir()), key=lambda p: p.stat().st_mtime)

    def close(self):
        """Ends what a failed check left running, so that it does not disturb the next test."""
        end([process.pid for process in self.started if process.poll() is None])
        for bundle in self.directory.iterdir():
            end([pid for pid, _ in processes_of(bundle)])
        shutil.rmtree(self.directory, ignore_errors=True)


def processes_of(bundle):
    """Living processes that carry the run's variable: what it started, wherever it went."""
    wanted = f"GPUWHY_RUN={os.path.abspath(bundle)}".encode()
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
                if wanted in (entry / "environ").read_bytes().split(b"\0") and state not in "ZX":
                    found.append((int(entry.name), (entry / "comm").read_text().strip()))
            except OSError:
                pass
    return found


def has_report(run):
    """The report is in the bundle, or was left out because of keys in it: nsys writes down the environment of every
    process it can see, of other tests too."""
    return (run.bundle / "nsys/run.nsys-rep").exists() or "secrets_in_report" in run.findings()


def leftovers(runner):
    """What doctor says of runs that were cut off."""
    printed = subprocess.run([runner.program, "doctor", "--json", f"artifacts.dir={runner.directory}"],
                             capture_output=True, text=True, timeout=120).stdout
    return next(check for check in json.loads(printed)["checks"] if check["id"] == "leftovers")


def wait_until(condition, seconds=200):
    """A busy machine takes its time; what never comes is said before ctest ends the test."""
    end = time.time() + seconds
    while time.time() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError("waited in vain")


def wait_while(process, condition):
    """The same, of a process that must not end meanwhile."""
    def look():
        value = condition()
        if not value and process.poll() is not None:
            said = process.communicate()
            raise AgentFailed(said[1]) if agent_failed(*said) else AssertionError(f"it ended with {process.returncode}: {said}")
        return value

    return wait_until(look)


def end(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
