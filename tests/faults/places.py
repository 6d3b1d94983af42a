#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test of missing, read-only and full places: HOME, TMPDIR and the output folder. File systems are mounted in a separate namespace; if
that is not permitted, these checks are skipped with a message."""
import os
import shutil
import subprocess
import sys

import common

INSIDE = "GPUWHY_FAULTS_NAMESPACE"
FREE_KIB = (0, 4, 32, 96, 192)


def enter_namespace():
    """Starts this script once more where mounting is allowed, by root or by anybody; nothing is left when it ends."""
    for options in (["--mount"], ["--mount", "--map-root-user"]):
        probe = ["unshare", *options, "sh", "-c", "mount -t tmpfs -o size=64k none /mnt"]
        if shutil.which("unshare") and subprocess.run(probe, stderr=subprocess.DEVNULL).returncode == 0:
            os.environ[INSIDE] = "yes"
            os.execvp("unshare", ["unshare", *options, sys.executable, *sys.argv])
    print("skipped: read-only and full file systems, for mount is not allowed here")


def mount(folder, *options):
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", ",".join(options), "none", folder], check=True)


def check_variables(asked, scratch, outcomes, commands):
    """Without homes and temporary folders: only what needs one may fail, and says which to name."""
    push = common.Command("fleet push", [asked.program, "fleet", "push", scratch / "ranks", "--to", "http://127.0.0.1:9", "--wait", 1])
    for name, changed, spoils in (("no HOME", {"HOME": None}, {"fleet push": "--spool"}),
                                  ("HOME is not a folder", {"HOME": "/dev/null"}, {"fleet push": "cannot make"}),
                                  ("no TMPDIR", {"TMPDIR": None}, {}),
                                  ("TMPDIR is missing", {"TMPDIR": scratch / "not" / "there"}, {}),
                                  ("TMPDIR is not a folder", {"TMPDIR": "/dev/null"}, {"run": "export TMPDIR="})):
        environment = {**{key: value for key, value in os.environ.items() if not key.startswith("XDG_")}, **changed}
        environment = {key: str(value) for key, value in environment.items() if value is not None}
        for command in (commands["run"], commands["analyze --out"], push):
            folder = scratch / "variables" / "out"
            folder.mkdir(parents=True)
            result = subprocess.run(command.words(folder), capture_output=True, text=True, timeout=250, cwd=folder.parent, env=environment)

            def judge():
                if command.name in spoils:
                    assert result.returncode != 0 and spoils[command.name] in result.stderr, result
                    assert "internal error" not in result.stderr, result.stderr
                elif command is push:
                    assert "batches wait in" in result.stderr, result  # there is no server
                else:
                    return command.judge(result, {}, folder, may_fail=False)
                return "incomplete, said"

            outcomes.add(command.name, name, judge)
            shutil.rmtree(scratch / "variables")


def check_disk(scratch, outcomes, command, name, spoil, place, most_kib=512):
    """`spoil` makes the file system what it should be, with what the command needs in it already."""
    folder = place / "out"
    mount(place, f"size={most_kib}k")
    try:
        folder.mkdir()
        command.prepare(folder)
        before = common.contents(folder)
        spoil(place)
        result = command.run(folder)
        outcomes.add(command.name, name, lambda: command.judge(result, before, folder))
    finally:
        subprocess.run(["umount", place], check=True)


def leave_free(place, kib):
    """Fills a file system up to so much."""
    room = shutil.disk_usage(place).free - kib * 1024
    if room > 0:
        (place / "filler").write_bytes(b"x" * room)


def check_disks(scratch, outcomes, command):
    place = scratch / "disk" / command.name.replace(" ", "_")
    read_only = lambda where: subprocess.run(["mount", "-o", "remount,ro", where], check=True)  # noqa: E731
    check_disk(scratch, outcomes, command, "read-only", read_only, place)
    for kib in FREE_KIB:
        check_disk(scratch, outcomes, command, "really full", lambda where: leave_free(where, kib), place, 1024)


def check_tmpdir(scratch, outcomes, run, name, *options):
    mount(scratch / "small", *options)
    folder = scratch / "tmpdir" / "out"
    folder.mkdir(parents=True)
    result = run.run(folder, {"TMPDIR": str(scratch / "small")})

    def judge():
        assert not list((scratch / "small").iterdir()), "something is left in TMPDIR"
        return run.judge(result, {}, folder)

    outcomes.add("run", name, judge)
    shutil.rmtree(folder.parent)
    subprocess.run(["umount", scratch / "small"], check=True)


def main(asked, scratch):
    outcomes = common.Outcomes()
    commands = {command.name: command for command in common.commands(asked.program, asked.workload, scratch)}
    for command in commands.values():
        command.learn(scratch / "reference" / command.name.replace(" ", "_") / "out")
    check_variables(asked, scratch, outcomes, commands)
    if os.environ.get(INSIDE):
        outcomes.each([(check_disks, scratch, outcomes, command) for command in commands.values()])
        check_tmpdir(scratch, outcomes, commands["run"], "TMPDIR is read-only", "ro")
        check_tmpdir(scratch, outcomes, commands["run"], "TMPDIR is full", "size=64k")
        return outcomes.finish(15 + (1 + len(FREE_KIB)) * len(commands) + 2)
    outcomes.finish(15)
    return 77


if not os.environ.get(INSIDE):
    enter_namespace()
common.main(main)
