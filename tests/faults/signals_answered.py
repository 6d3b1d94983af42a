#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SIGINT, SIGTERM and SIGHUP at random instants of run, run --repeat, run --server, analyze, merge and fleet push, also between the passes
of a run and while its log is scrubbed. After every one gpuwhy ends within two seconds with code 130 or by the signal, none is swallowed,
no process is left, nothing more is started, the bundle says that it was stopped or is none, and nothing stays of a log that was not
scrubbed.

A busy machine gives gpuwhy no processor for a while. The kernel counts that time, and it is not gpuwhy's. Threads and programs that it
waits for are not counted there, so an instant that is late still is tried again with nothing beside it, and must be in time then.

--instants is the number of signals in all, each sent while its command ran."""
import json
import os
import pathlib
import random
import select
import shutil
import signal
import socket
import subprocess
import sys
import time

import common

PLAYBACK = pathlib.Path(__file__).resolve().parent.parent / "playback_server.py"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
INSTANTS = 72
TRIES = 20  # until a signal comes before the command has ended
ANSWER_S = 2.0
AT_ITS_END_S = 0.1  # the last moment of a command
LANES = 8  # commands at one time: mostly they wait
LOOKS = 3  # at an instant that was late
SECRET = "hunter2-spoken-aloud"
# Some MB of lines, the secret as the last: scrubbing takes longer than the program.
TALK = f"yes 'step=17 loss=0.25 lr=0.0003 path=/data/models/some-model/shard-00001' | head -c %d; echo {SECRET}"


class ServerCommand(common.Command):
    """A command that starts a server, at a port of its own."""

    def words(self, folder):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        return [word.replace("PORT", port) for word in super().words(folder)]


def num_files(folder, name):
    """Files of this name, or all; folders may go meanwhile."""
    return sum(name in ("", found) for _, _, names in os.walk(folder) for found in names)


def is_ending(pid):
    """It has ended, or called exit: the kernel drops the signals of such a process (PF_EXITING of include/linux/sched.h)."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return fields[0] in "ZX" or int(fields[6]) & 0x4 != 0


def starved_s(process):
    """How long its first thread, and this one that waits for it, could have run while others did. Of one that has ended, too."""
    return sum(int(pathlib.Path(f"/proc/{which}/schedstat").read_text().split()[1]) for which in (process.pid, "thread-self")) / 1e9


def answered_s(process, number):
    """Seconds from the signal to the end, by the clock and without those in which others had the processor. Killed after a minute."""
    ended = select.poll()
    handle = os.pidfd_open(process.pid)
    ended.register(handle, select.POLLIN)
    starved, start = starved_s(process), time.monotonic()
    os.kill(process.pid, number)
    if not ended.poll(60_000):
        process.kill()
        ended.poll()
    took_s = time.monotonic() - start
    starved = starved_s(process) - starved
    os.close(handle)
    process.wait()
    return took_s, max(0.0, took_s - starved)


def bundles_in(folder):
    return [path.parent for name in ("running.json", "manifest.json") for path in folder.rglob(name)]


def begun(bundle):
    """When its first file was written."""
    return min((path.stat().st_mtime for path in bundle.rglob("*") if path.is_file()), default=0.0)


def judge(command, code, folder, own_s, sent_at, was_done):
    if code == 0:
        # It had ended, but for its last words: a run must have been there already, others write for a few ms.
        assert was_done or not command.name.startswith("run"), "exit 0, and not all was done: the signal was swallowed"
        assert command.is_done(folder), "exit 0, and not all was done"
        return "complete"
    if code == command.code:
        # Its own end, within the microseconds after it was seen running. A push waits for seconds: one that did not hear the signal would
        # have gone on.
        assert own_s < AT_ITS_END_S, f"exit {code} after {own_s:.2f} s: the signal was swallowed"
        return "complete"
    assert code == 130 or code < 0, f"exit {code}"
    if not command.name.startswith("run"):
        return "answered"
    for bundle in set(bundles_in(folder)):
        log = bundle / "baseline/log.txt"
        assert not log.exists() or SECRET not in log.read_text(), f"{log} was not scrubbed"
        manifest = bundle / "manifest.json"
        if manifest.exists():
            run = json.loads(manifest.read_text())["run"]
            # One run of several may be whole.
            assert run["exit_code"] in (0, 130), run["exit_code"]
            is_told = any(finding["reason"] == "interrupted" for finding in run["contract"]["findings"])
            assert is_told == (run["exit_code"] == 130), run["contract"]
        else:
            # It is unfinished, and no command takes it for a bundle.
            listed = subprocess.run([command.argv[0], "view", "--files", bundle], capture_output=True, text=True)
            assert listed.returncode != 0 and "did not finish" in listed.stderr, listed
    if code == 130 and command.name in ("run", "run --server") and bundles_in(folder):
        assert "interrupted" in (bundles_in(folder)[0] / "manifest.json").read_text(), "the bundle does not say that it was stopped"
    # One may have been about to begin.
    late = [bundle.name for bundle in set(bundles_in(folder)) if begun(bundle) > sent_at]
    assert len(late) <= 1, f"runs were started after the signal: {late}"
    assert not list((folder.parent / "tmp").iterdir()), "scratch is left"
    return "answered"


class Looks:
    """What was seen of all instants."""

    def __init__(self):
        self.outcomes, self.answers, self.late = common.Outcomes(), [], []

    def first(self, command, number, chance, place):
        for _ in range(TRIES):
            delay_s = chance.uniform(0, command.took_s)
            answer = self.signalled(command, number, delay_s, place)
            if answer:
                took_s, own_s = answer
                self.answers.append((took_s, own_s, command.name, number.name))
                if own_s > ANSWER_S:
                    self.late.append((command, number, delay_s, place, own_s))
                return
        self.outcomes.wrong.append(f"{command.name}: it ended before the signal, {TRIES} times")

    def again(self):
        """The late ones, with nothing beside them."""
        for command, number, delay_s, place, first_s in self.late:
            answers = [answer for answer in (self.signalled(command, number, delay_s, place) for _ in range(LOOKS)) if answer]
            own_s = max((own_s for _, own_s in answers), default=first_s)
            print(f"{command.name}, {number.name} after {delay_s:.2f} s: answered after {first_s:.2f} s, and after {own_s:.2f} s alone")
            if own_s > ANSWER_S:
                self.outcomes.wrong.append(f"{command.name}, {number.name}: answered after {own_s:.1f} s")

    def signalled(self, command, number, delay_s, place):
        """How long the answer took; nothing where the command had ended before the signal came."""
        folder = place / "out"
        for made in (folder, place / "tmp"):
            made.mkdir(parents=True)
        environment = {**os.environ, "TMPDIR": str(place / "tmp"), "SPOKEN_PASSWORD": SECRET, "FAULTS_PLACE": str(place)}
        with (place / "said").open("w") as said:
            process = subprocess.Popen(command.words(folder), stdout=said, stderr=said, cwd=folder, env=environment)
        time.sleep(delay_s)
        was_done = command.is_done(folder)
        # Last, and by kill itself: Popen.send_signal sends nothing to a process that has ended, and the walk above takes a while.
        if is_ending(process.pid):
            process.wait()
            shutil.rmtree(place)
            return None
        sent_at = time.time()
        answer = answered_s(process, number)

        def verdict():
            left = common.processes_in(place)
            assert not left, f"processes left: {left}"
            return judge(command, process.returncode, folder, answer[1], sent_at, was_done)

        self.outcomes.add(command.name, number.name, verdict)
        shutil.rmtree(place)
        return answer


def main(asked, scratch):
    # Under nohup, or as a shell's job in the background, the commands would be deaf to them, as they should.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    seed = int(asked.seed) if asked.seed else random.SystemRandom().randrange(10**6)
    print(f"--seed {seed}")
    looks = Looks()
    program, recording = asked.program, scratch / "run.sqlite"
    common.make_recording(recording)
    for rank in (1, 2):
        subprocess.run([program, "analyze", recording, "--out", scratch / f"ranks/{rank}", "--run-id", "job"],
                       check=True, stdout=subprocess.DEVNULL)
    talk = [program, "run", "--passes", "baseline", "--progress", "none", "--out", "{}"]
    commands = [
        common.Command("run", [*talk, "--", "sh", "-c", TALK % 20_000_000]),
        common.Command("run --repeat", [*talk, "--repeat", "4", "--", "sh", "-c", TALK % 100_000]),
        ServerCommand("run --server", [*talk, "--server", f"{sys.executable} {PLAYBACK} --port PORT", "--ready",
                                       "http://127.0.0.1:PORT/health", "--client",
                                       f"{program} load {{url}} --requests 20 --output-tokens 20 -o {{requests}}"]),
        common.Command("analyze --out", [program, "analyze", recording, "--out", "{}"]),
        common.Command("merge", [program, "merge", scratch / "ranks", "--out", "{}/all.gpuwhy", "--html", "{}/all.html"]),
        common.Command("push", [program, "fleet", "push", scratch / "ranks", "--to", "http://127.0.0.1:1", "--wait", "3", "--spool", "{}"])]
    jobs = []
    for command in commands:
        folder = scratch / "reference" / command.name.replace(" ", "_")
        folder.mkdir(parents=True)
        start = time.monotonic()
        code = command.run(folder, {"SPOKEN_PASSWORD": SECRET}).returncode
        took_s = time.monotonic() - start
        command.code = 5 if command.name == "push" else 0
        assert code == command.code, (command.name, code)
        what = "manifest.json" if command.name.startswith("run") else ""
        command.is_done = lambda at, what=what, least=num_files(folder, what): num_files(at, what) >= least
        command.took_s = took_s
    for i in range(int(asked.instants)):
        command, number = commands[i % len(commands)], SIGNALS[i // len(commands) % len(SIGNALS)]
        place = scratch / f"{command.name} {number:d} {i:04}".replace(" ", "_")
        jobs.append((looks.first, command, number, random.Random(f"{seed} {i}"), place))
    looks.outcomes.each(jobs, LANES)
    looks.again()
    swallowed = sum("swallowed" in line for line in looks.outcomes.wrong)
    for name in sorted({name for _, _, name, _ in looks.answers}):
        took = [answer[:2] for answer in looks.answers if answer[2] == name]
        print(f"{name:22} {len(took)} instants, the slowest answer took {max(took)[0]:.2f} s, {max(own for _, own in took):.2f} s of its own")
    print(f"{len(looks.answers)} instants, {swallowed} swallowed, {len(looks.late)} late at first, {len(looks.outcomes.wrong)} wrong")
    return looks.outcomes.finish(len(jobs))


common.main(main, seed={}, instants={"default": INSTANTS})
