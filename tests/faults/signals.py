#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SIGINT, SIGTERM and SIGHUP at random moments of commands that write: what is there afterwards is complete or clearly incomplete, and no
process, temporary file or scratch folder is left."""
import os
import random
import shutil
import signal
import subprocess
import time

import common

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
MOMENTS = 6


def judge(command, program, result, folder, place):
    left = common.processes_in(place)
    assert not left, f"processes left: {left}"
    assert not list((place / "tmp").iterdir()), f"left in TMPDIR: {list((place / 'tmp').iterdir())}"
    if command.name == "report html > file":
        text = (place / "stdout").read_text()
        assert result.returncode != 0 or text.rstrip().endswith("</html>"), "exit 0, but the page is cut"
        return "complete" if result.returncode == 0 else "ended by the signal"
    if command.name == "run" and result.returncode == 130:
        # Stopped at the user's request: the bundle is whole and says so, and the report with it.
        bundle = next(folder.iterdir())
        subprocess.run([program, "view", "--verify", bundle], check=True, stdout=subprocess.DEVNULL)
        assert "interrupted" in (bundle / "manifest.json").read_text()
        assert not [name for name in common.contents(folder) if common.TEMPORARY.search(name)]
        return "incomplete, said"
    for bundle in folder.iterdir() if command.name == "run" and result.returncode < 0 else []:
        # A bundle without a manifest is none; one that has it was finished before the signal, and is whole.
        listed = subprocess.run([program, "view", "--verify", bundle], capture_output=True, text=True)
        assert (listed.returncode == 0) == (bundle / "manifest.json").exists(), listed
    return command.judge(result, {}, folder)


def check(asked, scratch, outcomes, command, number, delay_s, place):
    folder = place / "out"
    for made in (folder, place / "tmp"):
        made.mkdir(parents=True)
    command.prepare(folder)
    with (place / "stdout").open("w") as out, (place / "stderr").open("w") as err:
        process = subprocess.Popen(command.words(folder), stdout=out, stderr=err, cwd=folder,
                                   env={**os.environ, "TMPDIR": str(place / "tmp"), "FAULTS_PLACE": str(place)})
        time.sleep(delay_s)
        process.send_signal(number)
        try:
            process.wait(timeout=200)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            outcomes.wrong.append(f"{command.name}: hangs after signal {number}")
    result = subprocess.CompletedProcess(process.args, process.returncode, "", (place / "stderr").read_text())
    outcomes.add(command.name, signal.Signals(number).name, lambda: judge(command, asked.program, result, folder, place))
    shutil.rmtree(place)


def main(asked, scratch):
    seed = int(asked.seed) if asked.seed else random.SystemRandom().randrange(10**6)
    print(f"--seed {seed}")
    chance = random.Random(seed)
    outcomes = common.Outcomes()
    program, recording = asked.program, scratch / "run.sqlite"
    commands = {command.name: command for command in common.commands(program, asked.workload, scratch)}
    commands = [commands[name] for name in ("run", "analyze --out", "scrub")] + [
        # It writes into its working directory.
        common.Command("export chrome", [program, "export", recording, "--format", "chrome"],
                       verify=lambda folder: common.is_whole(folder / "trace.json")),
        common.Command("report html > file", [program, "report", recording, "--format", "html"], verify=lambda folder: None)]
    jobs = []
    for command in commands:
        folder = scratch / "reference" / command.name.replace(" ", "_") / "out"
        folder.mkdir(parents=True)
        command.prepare(folder)
        start = time.monotonic()
        result = command.run(folder)
        took_s = time.monotonic() - start
        command.reference = common.contents(folder)
        assert result.returncode == 0, result
        jobs += [(check, asked, scratch, outcomes, command, number, chance.uniform(0, 1.2 * took_s),
                  scratch / f"{command.name} {number:d} {i:02}".replace(" ", "_"))
                 for number in SIGNALS for i in range(MOMENTS * (2 if command.name == "run" else 1))]
    outcomes.each(jobs)
    in_time = sum(count for (_, _, outcome), count in outcomes.table.items() if outcome != "complete")
    assert in_time >= len(jobs) // 10, f"only {in_time} signals came in time"
    return outcomes.finish(len(jobs))


common.main(main, seed={})
