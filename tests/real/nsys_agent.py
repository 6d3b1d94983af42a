#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test of a machine on which an agent of nsys was killed while it set up its shared memory: every capture fails, doctor says why,
`gpuwhy run` leaves it alone, and heals it if it is asked to.

In shared memory and a network of its own, so that no other test meets this state, or the sockets of another nsys."""
import fcntl
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

from runs import AgentFailed, Runner, end, has_report, leftovers, wait_until

SHARED_MEMORY = pathlib.Path("/dev/shm")
LOCKS = pathlib.Path("/tmp/nvidia")
IS_APART = "GPUWHY_TEST_IS_APART"
SECONDS_UNTIL_STALE = 62
OPTIONS = ("profile", "--sample=none", "--cpuctxsw=none", "--force-overwrite=true")


def capture(folder, *before):
    """nsys by itself. What it said."""
    done = subprocess.run([*before, "nsys", *OPTIONS, f"--session-new=agent-{os.getpid()}-{time.monotonic_ns()}",
                           f"--output={folder}/plain", "sleep", "0.1"], capture_output=True, text=True, timeout=120)
    return done.stdout + done.stderr


def agents():
    """Agents of this test's nsys, whatever became of them."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if f"--session-name=agent-{os.getpid()}-".encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def kill_in_the_middle(folder):
    """An agent ends after it has made its shared memory and before it has filled it."""
    said = capture(folder)
    if not (folder / "plain.nsys-rep").exists():
        raise AgentFailed(said)
    wait_until(lambda: not agents())
    sessions = next(SHARED_MEMORY.glob("NSys-*"), None) or SHARED_MEMORY / said_name()
    sessions.unlink(missing_ok=True)
    if shutil.which("strace"):
        capture(folder, "strace", "-f", "-o", "/dev/null", "-P", sessions, "-e", "trace=ftruncate", "-e",
                "inject=ftruncate:signal=SIGKILL")
    else:
        print("strace is not installed: the state is planted, not provoked")
        sessions.touch()
        sessions.chmod(0o666)
    end(agents())
    assert sessions.exists() and sessions.read_bytes()[:4] in (b"", bytes(4)), sessions
    return sessions


def said_name():
    """nsys removes its shared memory with its last session. The name has the version: 2022.4.2.1 of 2022.4.2.1-df9881f."""
    words = subprocess.run(["nsys", "--version"], capture_output=True, text=True, timeout=60).stdout.split()
    return f"NSys-{words[-1].split('-')[0]}"


def refuse(runner, sessions, hung):
    """A run without the option fails, names it, and touches nothing."""
    try:
        run = runner.run("--passes", "nsys")
        said = run.err
        assert run.code != 0, said
    except AgentFailed as error:
        said = str(error)
    assert "pipeline.nsys.remove_leftovers=true" in said and "removed" not in said and "ended nsys" not in said, said
    assert sessions.exists() and hung in agents(), (sessions, agents())


def heal(runner):
    """What gpuwhy said until a capture was complete. A busy machine may also fail the first ones."""
    said = ""
    for _ in range(3):
        try:
            run = runner.run("--passes", "nsys", "pipeline.nsys.remove_leftovers=true")
            assert run.code == 0 and has_report(run), str(run)
            return said + run.err
        except AgentFailed as error:
            said += str(error)
    raise AssertionError(f"not healed: {said}")


def check(runner):
    folder = runner.directory / "plain"
    folder.mkdir()
    try:
        sessions = kill_in_the_middle(folder)
        assert "Agent launcher failed" in capture(folder), "the state does no harm: the test shows nothing"
        sessions.unlink()
        assert "Agent launcher failed" in capture(folder), "removing the file is enough"
        sessions.touch()  # as if nobody had tried that
        until = time.time() + SECONDS_UNTIL_STALE
        wait_until(lambda: time.time() > until)
        said = leftovers(runner)
        hung = [pid for pid in agents() if f"nsys (pid {pid})" in said["finding"] and f"kill {pid}" in said["remedy"]]
        assert said["status"] == "WARN" and len(hung) == 1 and str(sessions) in said["remedy"], (said, agents())
        refuse(runner, sessions, hung[0])
        healed = heal(runner)
        assert f"ended nsys (pid {hung[0]})" in healed and f"removed {sessions}" in healed, healed
        wait_until(lambda: not agents())
    finally:
        end(agents())


def set_apart():
    LOCKS.mkdir(exist_ok=True)
    for place in (SHARED_MEMORY, LOCKS):
        subprocess.run(["mount", "-t", "tmpfs", "gpuwhy-test", place], check=True)
    set_flags, up, running = 0x8914, 0x1, 0x40  # SIOCSIFFLAGS, IFF_UP, IFF_RUNNING
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, set_flags, struct.pack("16sH14x", b"lo", up | running))


def main():
    arguments = testing.arguments("program", "workload")
    if not shutil.which("nsys"):
        testing.skip("nsys is not installed (tools/install-deps.sh nsight)")
    if IS_APART not in os.environ:
        apart = ["unshare", "--mount", "--net"]
        if os.geteuid() != 0 or subprocess.run([*apart, "true"]).returncode != 0:
            testing.skip("this needs root, for shared memory and a network of its own")
        os.environ[IS_APART] = "1"
        os.execvp(apart[0], [*apart, sys.executable, *sys.argv])
    set_apart()
    runner = Runner(arguments.program, arguments.workload)
    try:
        check(runner)
    except AgentFailed as error:
        print(f"not exercised: real.nsys_agent: nsys lost its own agent before one was killed\n{error}")
        return 77
    finally:
        runner.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
