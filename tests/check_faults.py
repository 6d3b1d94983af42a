#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Faults injected into every command that writes: a full disk, errors, interrupted and short writes, files that may not be made, renames
that fail, and the process killed, each at the n-th such call.

An outcome is complete (exit 0, and every file as it is without a fault), or clearly incomplete (another exit, and what is there is old,
whole, or missing its manifest). Never wrong, and no temporary file stays behind, unless the process was killed."""
import argparse
import collections
import hashlib
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

GOLDEN = pathlib.Path(__file__).parent / "golden"
KINDS = ("full", "eio", "eintr", "short", "create", "rename", "kill")
# Kinds that a program must get over.
HARMLESS = {"eintr", "short"}
TEMPORARY = re.compile(r"\.(tmp|scrubbed|clean|part)|\.llmprof-|~$")
MOST_CALLS = 60


def make_recording(path, case="analyze-model"):
    connection = sqlite3.connect(path)
    connection.executescript((GOLDEN / case / "run.sqlite.sql").read_text())
    if case != "analyze-model":
        connection.execute("INSERT INTO StringIds (id, value) VALUES (700000, 'hf_aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0z')")
    connection.commit()
    connection.close()


def contents(folder):
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*")) if path.is_file()}


class Command:
    """One command: what it is given, what it leaves in the folder."""

    def __init__(self, name, argv, prepare=lambda folder: None, verify=None):
        self.name, self.argv, self.prepare = name, argv, prepare
        self.verify = verify  # in place of the same bytes, where they hold times of day

    def run(self, folder, environment):
        self.prepare(folder)
        before = contents(folder)
        result = subprocess.run([str(word).replace("{}", str(folder)) for word in self.argv], capture_output=True, text=True,
                                timeout=60, cwd=folder.parent, env={**os.environ, **environment})
        return result, before, contents(folder)


def is_whole(path):
    """A file that a reader may take for finished must be."""
    if path.suffix == ".json":
        json.loads(path.read_text())
    if path.suffix == ".html":
        assert path.read_text().rstrip().endswith("</html>"), f"{path} is cut"
    if path.suffix == ".sqlite":
        check = sqlite3.connect(path)
        assert check.execute("PRAGMA integrity_check").fetchone() == ("ok",), f"{path} is damaged"
        check.close()


def judge(command, kind, result, before, after, reference, folder):
    """In one word; an assertion where it is wrong."""
    if result.returncode == 0 and command.verify:
        command.verify(folder)
        return "complete"
    if result.returncode == 0:
        changed = {name for name in reference if after.get(name) != reference[name]}
        assert not changed and after.keys() == reference.keys(), f"exit 0, but {changed or after.keys() ^ reference.keys()}"
        return "complete"
    assert kind not in HARMLESS, f"does not get over {kind}: {result.stderr}"
    for name in after:
        if not (kind == "kill" and TEMPORARY.search(name)):
            is_whole(folder / name)
    if kind != "kill":
        left = [name for name in after if TEMPORARY.search(name) and name not in before]
        assert not left, f"left behind: {left}"
        assert "llmprof: " in result.stderr or "pass_failed" in result.stderr, f"no sentence: {result.stderr!r}"
    return "killed" if kind == "kill" else "incomplete, said"


def commands(program, workload, scratch):
    recording = scratch / "run.sqlite"
    make_recording(recording)
    other = scratch / "other.sqlite"
    make_recording(other)

    def with_report(folder):
        subprocess.run([program, "analyze", recording, "--out", folder, "--trace-budget", "0"], check=True, stdout=subprocess.DEVNULL)

    def with_secret(folder):
        make_recording(folder / "run.sqlite", "analyze-graph")

    def whole_bundle(folder):
        bundles = list(folder.iterdir())
        assert len(bundles) == 1 and (bundles[0] / "report.md").exists(), bundles
        subprocess.run([program, "artifacts", "--verify", bundles[0]], check=True, stdout=subprocess.DEVNULL)

    return [Command("run", [program, "run", "--passes", "baseline", "artifacts.stage2_dir={}", "--", workload, "--steps", "2",
                            "--prefill-ms", "1", "--step-ms", "1"], verify=whole_bundle),
            Command("analyze --out", [program, "analyze", recording, "--out", "{}"]),
            Command("analyze --out, again", [program, "analyze", recording, "--out", "{}"], with_report),
            Command("export pftrace", [program, "export", recording, "--out", "{}/t.pftrace"]),
            Command("export chrome", [program, "export", recording, "--format", "chrome", "--out", "{}/t.json"]),
            Command("export pprof", [program, "export", recording, "--format", "pprof", "--out", "{}/k.pb.gz"]),
            Command("baseline set", [program, "baseline", "set", "main", recording, "--directory", "{}"]),
            Command("compare --out", [program, "compare", recording, "--to", other, "--out", "{}/c.html"]),
            Command("scrub", [program, "scrub", "{}/run.sqlite"], with_secret)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--shim", required=True)
    parser.add_argument("--workload", required=True)
    asked = parser.parse_args()
    shim = os.environ.get("LD_PRELOAD", "") + " " + asked.shim
    table, wrong = collections.Counter(), []
    with tempfile.TemporaryDirectory() as directory:
        scratch = pathlib.Path(directory)
        for command in commands(asked.program, asked.workload, scratch):
            reference_folder = scratch / "out"
            reference_folder.mkdir()
            plain, _, reference = command.run(reference_folder, {})
            shutil.rmtree(reference_folder)
            expected = plain.returncode
            assert expected in (0, 4) and reference, (command.name, plain.stderr)
            for kind in KINDS:
                for n in range(1, MOST_CALLS):
                    folder = scratch / "out"
                    folder.mkdir()
                    result, before, after = command.run(folder, {"LD_PRELOAD": shim.strip(), "LLMPROF_FAULT_KIND": kind,
                                                                 "LLMPROF_FAULT_AT": str(n), "LLMPROF_FAULT_DIR": str(folder),
                                                                 "LLMPROF_FAULT_TOLD": str(scratch / "came"),
                                                                 "ASAN_OPTIONS": "verify_asan_link_order=0"})
                    came = (scratch / "came").is_symlink()
                    (scratch / "came").unlink(missing_ok=True)
                    if expected == 4 and result.returncode == 4:
                        result.returncode = 0  # compare's own verdict
                    try:
                        outcome = judge(command, kind, result, before, after, reference, folder)
                    except AssertionError as error:
                        outcome = "WRONG"
                        wrong.append(f"{command.name}, {kind} at {n}: {error}")
                    shutil.rmtree(folder)
                    if not came:
                        break  # there is no n-th call
                    table[command.name, kind, outcome] += 1
    for (name, kind, outcome), count in sorted(table.items()):
        print(f"{name:22} {kind:7} {outcome:17} {count}")
    print(f"{sum(table.values())} faults, {len(wrong)} wrong")
    for line in wrong[:20]:
        print(line)
    assert not wrong and sum(table.values()) >= 300, "see above"
    return 0


if __name__ == "__main__":
    sys.exit(main())
