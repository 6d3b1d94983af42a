#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SIGINT, SIGTERM and SIGHUP at random moments, also between the passes of a run, while its log is scrubbed and in --repeat: after every one
llmprof ends within two seconds (more where the machine is busy: two seconds of an idle one), none is swallowed, nothing more is started,
and nothing stays of a log that was not scrubbed.

--moments is the number per command and signal: 15 times as many in all."""
import json
import os
import random
import shutil
import signal
import subprocess
import time

import common

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
MOMENTS = 8
ANSWER_S = 2.0
ANSWERS_S = []  # how long each took
SECRET = "hunter2-spoken-aloud"
# Some MB of lines, the secret as the last: scrubbing takes longer than the program.
TALK = f"yes 'step=17 loss=0.25 lr=0.0003 path=/data/models/some-model/shard-00001' | head -c %d; echo {SECRET}"


def slowness():
    """How much longer work takes here than the processor time it needs: others want the processor too."""
    wall, used = time.monotonic(), time.thread_time()
    while time.thread_time() - used < 0.02:
        pass
    return max(1.0, (time.monotonic() - wall) / (time.thread_time() - used))


def bundles_in(folder):
    return [path.parent for name in ("running.json", "manifest.json") for path in folder.rglob(name)]


def judge(command, process, folder, took_s, before, was_done, limit_s):
    code = process.returncode
    assert took_s <= limit_s, f"answered after {took_s:.1f} s"
    if code == 0:
        # It had ended, but for its last words: a run must have been there already, others write for a few ms.
        assert was_done or not command.name.startswith("run"), "exit 0, and not all was done: the signal was swallowed"
        assert command.is_done(folder), "exit 0, and not all was done"
        return "complete"
    assert code == 130 or code < 0, f"exit {code}"
    if not command.name.startswith("run"):
        return "answered"
    for bundle in bundles_in(folder):
        log = bundle / "baseline/log.txt"
        assert not log.exists() or SECRET not in log.read_text(), f"{log} was not scrubbed"
        manifest = bundle / "manifest.json"
        if manifest.exists():
            run = json.loads(manifest.read_text())["run"]
            # One run of several may be whole.
            assert run["exit_code"] in (0, 130), run["exit_code"]
    assert len(set(bundles_in(folder))) <= before + 1, "another run was started"
    assert not list((folder.parent / "tmp").iterdir()), "scratch is left"
    return "answered"


def check(outcomes, command, number, delay_s, place):
    folder = place / "out"
    for made in (folder, place / "tmp"):
        made.mkdir(parents=True)
    environment = {**os.environ, "TMPDIR": str(place / "tmp"), "SPOKEN_PASSWORD": SECRET}
    with (place / "said").open("w") as said:
        process = subprocess.Popen(command.words(folder), stdout=said, stderr=said, cwd=folder, env=environment)
    time.sleep(delay_s)
    busy = slowness()  # before the look at what is done: it takes time
    if process.poll() is not None:
        shutil.rmtree(place)
        return
    before, was_done = len(set(bundles_in(folder))), command.is_done(folder)
    start = time.monotonic()
    process.send_signal(number)
    try:
        process.wait(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    took_s = time.monotonic() - start
    limit_s = ANSWER_S * max(busy, slowness())
    outcomes.add(command.name, signal.Signals(number).name,
                 lambda: judge(command, process, folder, took_s, before, was_done, limit_s))
    ANSWERS_S.append(took_s)
    shutil.rmtree(place)


def main(asked, scratch):
    seed = int(asked.seed) if asked.seed else random.SystemRandom().randrange(10**6)
    print(f"--seed {seed}")
    chance = random.Random(seed)
    outcomes = common.Outcomes()
    program, recording = asked.program, scratch / "run.sqlite"
    common.make_recording(recording)
    for rank in (1, 2):
        subprocess.run([program, "analyze", recording, "--out", scratch / f"ranks/{rank}", "--run-id", "job"],
                       check=True, stdout=subprocess.DEVNULL)
    talk = [program, "run", "--passes", "baseline", "--progress", "none", "--out", "{}"]
    commands = [
        common.Command("run", [*talk, "--", "sh", "-c", TALK % 20_000_000]),
        common.Command("run --repeat", [*talk, "--repeat", "4", "--", "sh", "-c", TALK % 100_000]),
        common.Command("analyze --out", [program, "analyze", recording, "--out", "{}"]),
        common.Command("merge", [program, "merge", scratch / "ranks", "--out", "{}/all.llmprof", "--html", "{}/all.html"]),
        common.Command("push", [program, "fleet", "push", scratch / "ranks", "--to", "http://127.0.0.1:1", "--wait", "5", "--spool", "{}"])]
    jobs = []
    for command in commands:
        folder = scratch / "reference" / command.name.replace(" ", "_")
        folder.mkdir(parents=True)
        start = time.monotonic()
        code = command.run(folder, {"SPOKEN_PASSWORD": SECRET}).returncode
        took_s = time.monotonic() - start
        assert code == (5 if command.name == "push" else 0), (command.name, code)
        what = "manifest.json" if command.name.startswith("run") else "*"
        command.is_done = lambda at, what=what, least=len(list(folder.rglob(what))): len(list(at.rglob(what))) >= least
        jobs += [(check, outcomes, command, number, chance.uniform(0, took_s), scratch / f"{command.name} {number:d} {i:02}".replace(" ", "_"))
                 for number in SIGNALS for i in range(int(asked.moments))]
    outcomes.each(jobs)
    print(f"{len(jobs)} instants, {len(ANSWERS_S)} of them while the command ran, {len(outcomes.wrong)} wrong; the slowest answer took "
          f"{max(ANSWERS_S):.2f} s, {sum(took_s > ANSWER_S for took_s in ANSWERS_S)} more than {ANSWER_S} s on this machine, "
          f"which is {slowness():.1f} times as slow as an idle one")
    return outcomes.finish(len(jobs) // 3)


common.main(main, seed={}, moments={"default": MOMENTS})
