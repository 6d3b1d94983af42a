#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test of failing system calls in every command that writes, at the n-th call, for every n until the fault no longer occurs: full disk,
errors, interrupted and short writes, files that cannot be created, failing renames, signals, SIGKILL. And of requests for memory that are
refused, with one thread and with several: a thread that fails must not leave another waiting."""
import pathlib
import shutil
import subprocess
import sys

import common

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "fleet"))
import hostile  # noqa: E402: a server that keeps what it is sent

CLOCKS = ("forwards", "backwards")
KINDS = ("full", "eio", "eintr", "short", "create", "rename", "term", "kill")
# Kinds that a program must get over.
HARMLESS = {"eintr", "short", *CLOCKS}
MOST_CALLS = 60
THREADS = (1, 2, 4)
MOST_LOOKS = 8  # at the clock: libcurl has many more


def check(asked, scratch, outcomes, command, kind):
    place = scratch / f"{command.name} {kind}".replace(" ", "_")
    for n in range(1, MOST_CALLS):
        folder = place / "out"
        folder.mkdir(parents=True)
        command.prepare(folder)
        before = common.contents(folder)
        try:
            result = command.run(folder, common.with_shim(asked, KIND=kind, AT=n, DIR=folder, TOLD=place / "came"))
        except subprocess.TimeoutExpired:
            outcomes.wrong.append(f"{command.name}, {kind} {n}: hangs")
            return
        has_come = (place / "came").is_symlink()
        outcome = outcomes.add(command.name, kind, lambda: command.judge(result, before, folder, kind not in HARMLESS, kind == "kill")
                               if has_come else command.judge(result, before, folder, False) and None)
        if result.returncode < 0 and kind not in ("kill", "term"):
            outcomes.wrong.append(f"{command.name}, {kind} {n}: signal {-result.returncode}")
        shutil.rmtree(place)
        if not has_come or outcome == "WRONG":
            return
    # Reading and analysis ask for memory less often. In a report, nlohmann::json does so in destructors, which ends the program.
    if kind != "memory":
        outcomes.wrong.append(f"{command.name}, {kind}: no end of calls")


def check_push(asked, scratch, outcomes, kind):
    """A push that went wrong, then one without a fault: the server has every row, and what it was sent twice is the same insert, which it
    counts once."""
    def push(server, spool, files, environment):
        argv = [asked.program, "fleet", "push", *files, "--to", server.url, "--spool", "{}", "--batch-rows", 5, "--wait", 5]
        return common.Command("fleet push", argv).run(spool, {"NO_PROXY": "127.0.0.1", **environment})

    files, server = [scratch / "ranks"], hostile.Server()
    first = push(server, scratch / f"spool-{kind}", files, {})
    wanted = set(server.inserts)
    assert first.returncode == 0 and len(wanted) >= 6, first
    for n in range(1, MOST_LOOKS + 1 if kind in CLOCKS else MOST_CALLS):
        place = scratch / f"push-{kind}"
        spool = place / "spool"
        spool.mkdir(parents=True)
        server.inserts.clear()
        hurt = push(server, spool, files, common.with_shim(asked, KIND=kind, AT=n, DIR=spool, TOLD=place / "came"))
        has_come = (place / "came").is_symlink()

        def judge():
            assert hurt.returncode == 0 or kind not in HARMLESS, f"does not get over it: {hurt}"
            assert hurt.returncode <= 0 or "gpuwhy: " in hurt.stderr, f"no sentence: {hurt}"
            left = [path.name for path in spool.iterdir() if common.TEMPORARY.search(path.name)]
            assert kind == "kill" or not left, f"left behind: {left}"
            if hurt.returncode == 0:
                assert set(server.inserts) == wanted, "exit 0, but not all is there"
            again = push(server, spool, files, {})
            assert again.returncode == 0, again
            assert set(server.inserts) == wanted, "not whole after the second push, or cut differently"
            assert not list(spool.glob("*.batch")) and not (spool / "failed").exists(), list(spool.iterdir())
            return ("complete" if hurt.returncode == 0 else "made whole") if has_come else None

        outcomes.add("fleet push", kind, judge)
        shutil.rmtree(place)
        if not has_come:
            return


def main(asked, scratch):
    outcomes = common.Outcomes()
    commands = [command for command in common.commands(asked.program, asked.workload, scratch) if command.name != "analyze --out, two"]
    analyses = common.analyses(asked.program, scratch, THREADS)
    for command in commands + analyses:
        command.learn(scratch / "reference" / command.name.replace(" ", "_") / "out")
    jobs = [(check, asked, scratch, outcomes, command, kind) for command in commands for kind in KINDS]
    jobs += [(check, asked, scratch, outcomes, command, "memory") for command in analyses]
    outcomes.each(jobs + [(check_push, asked, scratch, outcomes, kind) for kind in KINDS + CLOCKS])
    outcomes.want({(name, kind) for name in [command.name for command in commands] + ["fleet push"] for kind in KINDS}
                  | {(command.name, "memory") for command in analyses})
    return outcomes.finish(400)


common.main(main)
