#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs golden cases: a folder with a command and what it must print.

  cmd              one command line, `gpuwhy ...`, with NAME=value before it for its environment
  expected.out     standard output, whole
  expected.keys    in its place: lines `kernels[0].calls = 2` that the JSON on standard output must have
  expected.err     standard error, whole; absent: empty
  expected.code    exit code; absent: 0
  NAME.sqlite.sql  SQL from which NAME.sqlite is made, so that a reviewer can read a recording; the line
                   `-- include CASE/NAME.sqlite.sql` stands for that file, `-- engine OPTIONS` for a recording of
                   make_engine_trace.py, `-- serving OPTIONS` for one of make_requests.py
  input_of         the name of another case whose input is taken
  anything else    input, copied into the empty directory the command runs in

A command line that is refused (exit code 2, nothing on standard output) and needs no recording of its own is a row of
refused/rows: `> NAME $ COMMAND`, and below it standard error, whole. `> NAME (CASE) $ COMMAND` takes the input of CASE;
what only rows need lies beside the table.

Where a command prints or writes a metrics.json, the conservation laws of laws.py are checked on it too.

  run_golden.py --program build/release/gpuwhy tests/golden/<case>             check one
  run_golden.py --program build/release/gpuwhy tests/golden/refused/<name>     check one row
  run_golden.py --program build/release/gpuwhy --update tests/golden/*         write what is printed now
"""
import argparse
import difflib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import laws
import recording


def streams_of(case):
    return ("keys" if (case / "expected.keys").exists() else "out", "err", "code")


def keys_now(case, text):
    """The lines of expected.keys with the values that a JSON has."""
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    lines = []
    for line in expectation(case, "keys").splitlines():
        path = line.partition(" = ")[0]
        try:
            value = document
            for key, place in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path):
                value = value[key or int(place)]
            lines.append(f"{path} = {json.dumps(value, ensure_ascii=False)}\n")
        except (LookupError, TypeError):
            lines.append(f"{path} is not there\n")
    return "".join(lines)


ROW = re.compile(r"(> (?P<name>\S+)(?: \((?P<inputs>\S+)\))? \$ (?P<cmd>.*\n))(?P<err>(?:(?!> ).*\n)+)")


def unfold(table, folder):
    """Makes a folder of each row of a table; returns the folders."""
    text = table.read_text()
    rows = list(ROW.finditer(text))
    cases = [folder / row["name"] for row in rows]
    if "".join(row[0] for row in rows) != text or len(set(cases)) != len(cases):
        sys.exit(f"{table}: a name twice, or a line outside of its rows")
    for case, row in zip(cases, rows):
        case.mkdir()
        for file, content in (("cmd", row["cmd"]), ("expected.err", row["err"]), ("expected.code", "2\n")):
            (case / file).write_text(content)
        if row["inputs"]:
            (case / "input_of").write_text(str(table.parent.parent.resolve() / row["inputs"]))
    return cases


def fold(table, folder):
    """Takes the messages of a table from the folders of its rows."""
    for case in folder.iterdir():
        if (case / "expected.out").exists() or expectation(case, "code") != "2\n":
            sys.exit(f"{case.name} is not refused: make a folder of it")
    table.write_text(ROW.sub(lambda row: row[1] + expectation(folder / row["name"], "err"), table.read_text()))


def arrange(case, directory):
    """Puts the input of a case into a directory. The words that follow the program's name, and the environment to run it in."""
    words = shlex.split((case / "cmd").read_text(), comments=True)
    environment = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "dumb"}
    environment.update((k, v) for k, v in os.environ.items() if k.endswith("SAN_OPTIONS"))
    while "=" in words[0]:
        name, value = words.pop(0).split("=", 1)
        environment[name] = value
    if words[0] != "gpuwhy":
        sys.exit(f"{case}/cmd must run gpuwhy")
    inputs = case.parent / (case / "input_of").read_text().strip() if (case / "input_of").exists() else case
    for path in inputs.iterdir():
        if path.name.endswith(".sqlite.sql"):
            recording.make_sqlite(path, directory / path.name.removesuffix(".sql"))
        elif path.name not in ("cmd", "rows") and not path.name.startswith("expected."):
            (shutil.copytree if path.is_dir() else shutil.copy)(path, directory / path.name)
    return words[1:], environment


def run(program, case):
    with tempfile.TemporaryDirectory() as scratch:
        directory = pathlib.Path(scratch)
        words, environment = arrange(case, directory)
        result = subprocess.run([program] + words, cwd=directory, env=environment, capture_output=True, timeout=120)
        texts = [result.stdout] + [path.read_bytes() for path in sorted(directory.rglob("metrics.json"))]
    return {"out": result.stdout.decode(errors="backslashreplace"),
            "keys": keys_now(case, result.stdout),
            "err": result.stderr.decode(errors="backslashreplace"),
            "code": f"{result.returncode}\n",
            "laws": [law for metrics in map(metrics_in, texts) if metrics for law in laws.broken_laws(metrics)]}


def metrics_in(text):
    """The metrics.json that a text is; None for another text."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) and "ledgers" in value else None


def expectation(case, stream):
    path = case / f"expected.{stream}"
    if path.exists():
        return path.read_bytes().decode()
    return "0\n" if stream == "code" else ""


def differences(actual, case):
    lines = [f"{case.name} breaks a conservation law: {law}" for law in actual["laws"]]
    for stream in streams_of(case):
        expected = expectation(case, stream)
        if actual[stream] != expected:
            lines += difflib.unified_diff(expected.splitlines(), actual[stream].splitlines(),
                                          f"{case.name}/expected.{stream}", "actual", lineterm="")
            lines = lines or [f"{case.name}/expected.{stream} differs in line ends"]
    return lines


def update(actual, case):
    for stream in streams_of(case):
        path = case / f"expected.{stream}"
        if actual[stream] == ("0\n" if stream == "code" else ""):
            path.unlink(missing_ok=True)
        else:
            path.write_text(actual[stream])


def prove_each_can_fail(program, root, unfolded):
    """Changes one character of each expectation in turn, and takes it away whole, which must not pass for an empty one: what
    still passes tests nothing."""
    laws.prove_each_can_break(metrics_in((root / "analyze-json" / "expected.out").read_text()))
    count = 0
    for case in sorted([*(path.parent for path in root.glob("*/cmd")), *unfold(root / "refused/rows", unfolded)]):
        actual = run(program, case)
        if differences(actual, case):
            sys.exit(f"{case.name} fails as it is")
        for expected in sorted(case.glob("expected.*")):
            with tempfile.TemporaryDirectory() as directory:
                copy = pathlib.Path(shutil.copytree(case, pathlib.Path(directory) / case.name))
                text = expected.read_text()
                at = len(text) // 2
                changed = text[:at] + ("x" if text[at] != "x" else "y") + text[at + 1:]
                (copy / expected.name).write_text(changed)
                if not differences(actual, copy):
                    sys.exit(f"{case.name} passes with one character of {expected.name} changed")
                (copy / expected.name).unlink()
                if not differences(actual, copy):
                    sys.exit(f"{case.name} passes without {expected.name}")
                count += 1
    if count == 0:
        sys.exit(f"no golden case in {root}")
    print(f"{count} expectations fail when one character changes")


def check(program, cases, is_update):
    """Whether all are as expected, or are made so."""
    lines = []
    for case in cases:
        actual = run(program, case)
        if is_update:
            update(actual, case)
        else:
            lines += differences(actual, case)
    print("\n".join(lines), end="\n" if lines else "", file=sys.stderr)
    return not lines


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--prove-each-can-fail", action="store_true")
    parser.add_argument("cases", type=pathlib.Path, nargs="+")
    arguments = parser.parse_args()
    program = arguments.program.resolve()
    if arguments.prove_each_can_fail:
        with tempfile.TemporaryDirectory() as directory:
            return prove_each_can_fail(program, arguments.cases[0], pathlib.Path(directory))
    good = True
    for path in arguments.cases:
        if (path / "cmd").exists():
            good &= check(program, [path], arguments.update)
            continue
        table = (path if path.is_dir() else path.parent) / "rows"
        with tempfile.TemporaryDirectory() as directory:
            rows = [row for row in unfold(table, pathlib.Path(directory)) if path.is_dir() or row.name == path.name]
            good &= check(program, rows, arguments.update) if rows else sys.exit(f"{table} has no row {path.name}")
            if arguments.update:
                fold(table, pathlib.Path(directory))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
