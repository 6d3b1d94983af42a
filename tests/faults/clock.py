#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test of clock jumps: by an hour, forwards and backwards, before the clock is read for the n-th time, in gpuwhy and in the program it
runs. No negative or absurd duration, no hang, and identical reports of recordings."""
import shutil

import common

MOST_CALLS = 40


def verify_repeats(program, folder):
    """Two runs in a folder of their own, each whole, whatever their clocks call them."""
    groups = list(folder.iterdir())
    assert len(groups) == 1, groups
    runs = list((groups[0] / "a").iterdir())
    assert len(runs) == 2, runs
    for run in runs:
        common.verify_one(program, run)


def check(asked, scratch, outcomes, command, kind):
    for n in range(1, MOST_CALLS):
        place = scratch / f"{command.name} {kind}".replace(" ", "_")
        folder = place / "out"
        folder.mkdir(parents=True)
        command.prepare(folder)
        result = command.run(folder, common.with_shim(asked, KIND=kind, AT=n, DIR=folder, TOLD=place / "came"))
        has_come = (place / "came").is_symlink()

        def judge():
            outcome = command.judge(result, {}, folder, may_fail=False)
            return outcome if has_come else None if n > 1 else "does not look at it"

        outcomes.add(command.name, kind, judge)
        shutil.rmtree(place)
        if not has_come:
            return


def main(asked, scratch):
    outcomes = common.Outcomes()
    commands = common.commands(asked.program, asked.workload, scratch)
    commands.append(common.Command("run --repeat 2", [asked.program, "run", "--repeat", 2, *commands[0].argv[2:]],
                                   verify=lambda folder: verify_repeats(asked.program, folder)))
    for command in commands:
        command.learn(scratch / "reference" / command.name.replace(" ", "_") / "out")
    outcomes.each([(check, asked, scratch, outcomes, command, kind) for command in commands for kind in ("forwards", "backwards")])
    came = {(name, kind) for name, kind, outcome in outcomes.table if outcome != "does not look at it"}
    outcomes.want({(name, kind) for name in ("run", "run --repeat 2") for kind in ("forwards", "backwards")}, came)
    return outcomes.finish(20)


common.main(main)
