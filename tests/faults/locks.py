#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test of things that other processes hold forever or left behind: SQLite locks, unfinished journals, files of running runs, temporary
files with our own process number, silent pipes. No command may hang, and a command that cannot work must say so."""
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys

import common

# gpuwhy takes no lock of its own: a bundle's folder is made with mkdir, batches are recognised by their hash, files are renamed.
LONGEST_S = 20


def ask(argv, **options):
    return subprocess.run([str(word) for word in argv], capture_output=True, text=True, timeout=LONGEST_S, **options)


def refused(result, *words):
    assert result.returncode != 0, result
    assert result.stderr.startswith("gpuwhy: ") and "internal error" not in result.stderr, result
    for word in words:
        assert word in result.stderr, result
    return "incomplete, said"


def sqlite_held(asked, folder, mode, argv, *words):
    """Another process has a transaction open and does not go on."""
    recording = folder / "held.sqlite"
    common.make_recording(recording, secrets=1)
    holder = subprocess.Popen([sys.executable, "-c", "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('BEGIN " + mode +
                               "'); print('held', flush=True); sys.stdin.read()", recording],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert holder.stdout.readline() == b"held\n"
        return refused(ask([asked.program, *argv, recording]), *words)
    finally:
        holder.communicate()


def dead_journal(asked, folder):
    """A writer died in the middle: reading is refused, scrubbing rolls it back first."""
    recording = folder / "dead.sqlite"
    common.make_recording(recording, secrets=1)
    writer = subprocess.run([sys.executable, "-c", "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('PRAGMA "
                             "cache_size=1'); c.execute('UPDATE StringIds SET value = value || ?', ['y' * 50000]); os._exit(0)", recording])
    assert writer.returncode == 0 and os.path.getsize(f"{recording}-journal") > 0
    refused(ask([asked.program, "analyze", recording]), "dead.sqlite-journal")
    scrubbed = ask([asked.program, "scrub", recording])
    assert scrubbed.returncode == 0, scrubbed
    common.is_whole(recording)
    rows = sqlite3.connect(recording).execute("SELECT value FROM StringIds").fetchall()
    assert rows and not any("yyyy" in value or common.SECRET in value for (value,) in rows), "what was not finished is in it"
    return "complete"


def dead_run(asked, folder, run):
    """A run that was killed, another whose process number is now somebody else's, and one that says nothing: none of them is in the way."""
    for name, text in (("20200101-000000", json.dumps({"pid": 1, "start_time": "1", "scratch": "/tmp/gpuwhy-none"})),
                       ("20200101-000001", json.dumps({"pid": 999999999, "start_time": "1"})), ("20200101-000002", "")):
        (folder / name).mkdir()
        (folder / name / "running.json").write_text(text)
        listed = ask([asked.program, "view", "--files", folder / name])
        assert listed.returncode != 0 and "did not finish" in listed.stderr, listed
    before = set(folder.iterdir())
    result = run.run(folder)
    assert result.returncode == 0, result
    (bundle,) = set(folder.iterdir()) - before
    common.verify_one(asked.program, bundle)
    return "complete"


def own_number(asked, folder, command, plant):
    """Temporary names of this very process are taken: by a file of another one that had the same number, or lives on another machine. They
    are left alone. The shell plants them and becomes gpuwhy, so it knows the number."""
    command.prepare(folder)
    names = [f".{os.path.basename(name)}" for name in command.reference]
    lines = "".join(f'for n in 0 1 2 3 4 5 6 7 8 9 10; do {plant} "$OUT/{name}.$$-$n.tmp"; done; ' for name in names)
    words = command.words(folder)
    result = ask(["sh", "-c", lines + 'exec "$@"', "sh", *words], cwd=folder.parent, env={**os.environ, "OUT": str(folder)})
    planted = [path for path in folder.iterdir() if path.name.endswith(".tmp")]
    assert len(planted) == 11 * len(names), "somebody else's file was removed"
    for path in planted:
        path.unlink()
    return command.judge(result, {}, folder, may_fail=False)


def pipe(asked, folder, *argv):
    os.mkfifo(folder / "pipe.sqlite")
    return refused(ask([asked.program, *argv, folder / "pipe.sqlite"]), "pipe.sqlite")


def stopped_server(asked, folder, scratch):
    """A server that takes the connection and says no word: the push gives up in the time it was given."""
    import socket
    with socket.create_server(("127.0.0.1", 0)) as server:
        return refused(ask([asked.program, "fleet", "push", scratch / "ranks", "--to", f"http://127.0.0.1:{server.getsockname()[1]}",
                            "--spool", folder / "spool", "--timeout", 1, "--wait", 1], env={**os.environ, "NO_PROXY": "127.0.0.1"}),
                       "batches wait in")


def main(asked, scratch):
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    outcomes = common.Outcomes()
    commands = {command.name: command for command in common.commands(asked.program, asked.workload, scratch)}
    for command in commands.values():
        command.learn(scratch / "reference" / command.name.replace(" ", "_") / "out")
    baseline = ["baseline", "set", "main", "--directory", str(scratch / "baselines")]
    checks = [("analyze", "held, to write", sqlite_held, "IMMEDIATE", ["analyze"], "is being written by another program"),
              ("analyze", "held, alone", sqlite_held, "EXCLUSIVE", ["analyze"], "is being written by another program"),
              ("baseline set", "held, alone", sqlite_held, "EXCLUSIVE", baseline, "is being written"),
              ("scrub", "held, to write", sqlite_held, "IMMEDIATE", ["scrub"], "locked"),
              ("scrub", "held, alone", sqlite_held, "EXCLUSIVE", ["scrub"], "locked"),
              ("analyze, scrub", "dead writer", dead_journal),
              ("run", "dead runs", dead_run, commands["run"]),
              ("analyze", "a pipe", pipe, "analyze"),
              ("scrub", "a pipe", pipe, "scrub"),
              ("fleet push", "a silent server", stopped_server, scratch)]
    for name in ("analyze --out", "export chrome", "baseline set", "merge", "scrub"):
        checks.append((name, "our number, a file", own_number, commands[name], "echo other >"))
        checks.append((name, "our number, a pipe", own_number, commands[name], "mkfifo"))
    for i, (command, fault, check, *arguments) in enumerate(checks):
        folder = scratch / f"lock{i}" / "out"
        folder.mkdir(parents=True)
        outcomes.add(command, fault, lambda: check(asked, folder, *arguments))
        shutil.rmtree(folder.parent)
    return outcomes.finish(len(checks))


common.main(main)
