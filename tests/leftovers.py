# SPDX-License-Identifier: Apache-2.0
"""Processes of a test that would outlive it: daemons that leave their parents, where neither the parent's end nor a process group reaches
them. All that work in a folder of the test are ended with it, whatever ends the test."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

LOOKS = 3  # in a row without a process: one may be about to start another


def processes_in(folder):
    """Living processes that name the folder in their arguments, their environment, their directory or an open file; not this one."""
    wanted, found = os.fsencode(folder), []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        if int(entry.name) == os.getpid():
            continue
        try:
            if (entry / "stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX":
                continue
            links = [os.fsencode(os.readlink(link)) for link in (entry / "cwd", *(entry / "fd").iterdir()) if link.is_symlink()]
            if any(wanted in text for text in ((entry / "cmdline").read_bytes(), (entry / "environ").read_bytes(), *links)):
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def end_in(folder, seconds=20):
    """Kills them, until none is left. True where none is."""
    quiet, end = 0, time.monotonic() + seconds
    while quiet < LOOKS and time.monotonic() < end:
        pids = processes_in(folder)
        quiet = 0 if pids else quiet + 1
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.1)
    return quiet == LOOKS


def end_with_me(folder):
    """Starts a process that waits for the end of this one and then calls end_in. It leaves its parent: what kills a test kills the
    children of the test, too."""
    heard, held = os.pipe()  # the other end is open as long as this process lives: no program that it starts inherits it
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork() == 0:
            os.close(held)
            for stream in range(3):  # somebody may wait until all that hold the test's output have ended
                os.dup2(os.open(os.devnull, os.O_RDWR), stream)
            os.read(heard, 1)
            end_in(folder)
        os._exit(0)
    os.waitpid(child, 0)
    os.close(heard)
    return held


def self_test():
    """A test that is killed, and a daemon of its that nothing else would end."""
    daemon = "import os, sys, time; os.fork() and os._exit(0); os.setsid(); log = open(sys.argv[1], 'w'); time.sleep(100)"
    test = ("import subprocess, sys, time; sys.path.insert(0, sys.argv[1]); import leftovers\n"
            "leftovers.end_with_me(sys.argv[2]); subprocess.run([sys.executable, '-c', sys.argv[3], sys.argv[2] + '/log'])\n"
            "print('ready', flush=True); time.sleep(100)")
    with tempfile.TemporaryDirectory() as folder:
        killed = subprocess.Popen([sys.executable, "-c", test, pathlib.Path(__file__).parent, folder, daemon], stdout=subprocess.PIPE, text=True)
        assert killed.stdout.readline() == "ready\n"
        assert len(processes_in(folder)) >= 2, processes_in(folder)  # the test and its daemon
        killed.kill()
        killed.wait()
        end = time.monotonic() + 60
        while processes_in(folder):
            assert time.monotonic() < end, f"left: {processes_in(folder)}"
            time.sleep(0.1)
    return 0


if __name__ == "__main__":
    sys.exit(self_test())
