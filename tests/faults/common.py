# SPDX-License-Identifier: Apache-2.0
"""What the tests of faults share: the commands that write, how an outcome is judged, and the table at the end.

An outcome is complete (exit 0, and every file as it is without a fault), or clearly incomplete (another exit, a sentence, and what is
there is old, whole, or missing its manifest). Never wrong, and no temporary file stays behind, unless the process was killed."""
import argparse
import collections
import concurrent.futures
import csv
import hashlib
import json
import os
import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from recording import make_recording as make_plain  # noqa: E402

TEMPORARY = re.compile(r"\.(tmp|scrubbed|clean|part)(-|$)|\.gpuwhy-|~$")
# A run tells why it has no recording once, in its verdict.
SENTENCE = re.compile("gpuwhy: |(pass_failed|disk_full) \\(|There is no recording: .*[a-z]")
STEPS = 2
SECRET = "hf_aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0z"


def make_recording(path, case="analyze-model", secrets=0):
    connection = sqlite3.connect(make_plain(path, case))
    # Environments: longer than a page, so that pages are given up when they go.
    connection.executemany("INSERT INTO StringIds (id, value) VALUES (?, ?)",
                           [(700000 + i, f"PAD={'x' * 5000}\0HF_TOKEN={SECRET}\0") for i in range(secrets)])
    connection.commit()
    connection.close()


def contents(folder):
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()}


def is_whole(path):
    """A file that a reader may take for finished must be. Links beside it are none of it."""
    if path.suffix == ".json":
        json.loads(path.read_text())
    if path.suffix == ".html":
        assert path.read_text().rstrip().endswith("</html>"), f"{path} is cut"
    if path.suffix == ".sqlite":
        has_link = any(os.path.islink(f"{path}{suffix}") for suffix in ("-journal", "-wal"))
        check = sqlite3.connect(f"file:{path}?immutable={has_link:d}", uri=True)
        assert check.execute("PRAGMA integrity_check").fetchone() == ("ok",), f"{path} is damaged"
        check.close()


def check_durations(tree, most_ns, name=""):
    """No time is negative, or longer than the test could have taken."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            check_durations(value, most_ns, key)
    elif isinstance(tree, list):
        for value in tree:
            check_durations(value, most_ns, name)
    elif name.endswith("_ns") and tree is not None:
        assert 0 <= tree <= most_ns, f"{name} is {tree}"


def processes_in(place):
    """Processes that know of a folder by their environment or arguments: all that a command started there."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            text = (process / "environ").read_bytes() + (process / "cmdline").read_bytes()
            if os.fsencode(place) in text and (process / "stat").read_text().rsplit(")")[-1].split()[0] != "Z":
                found.append(process.name)
        except OSError:
            pass
    return found


class Command:
    """One command: what it is given, what it leaves in the folder ({} in its words)."""

    def __init__(self, name, argv, prepare=lambda folder: None, verify=None, good=(0,)):
        self.name, self.argv, self.prepare, self.good = name, [str(word) for word in argv], prepare, good
        self.verify = verify  # replaces the comparison of bytes for files with timestamps
        self.reference = {}

    def words(self, folder):
        return [word.replace("{}", str(folder)) for word in self.argv]

    def run(self, folder, environment=None, **options):
        return subprocess.run(self.words(folder), capture_output=True, text=True, timeout=200, cwd=folder.parent,
                              env={**os.environ, **(environment or {})}, **options)

    def learn(self, folder):
        """What it leaves where nothing goes wrong."""
        folder.mkdir(parents=True)
        self.prepare(folder)
        result = self.run(folder)
        self.reference = contents(folder)
        assert result.returncode in self.good and self.reference, (self.name, result)

    def judge(self, result, before, folder, may_fail=True, may_leave=False):
        """In one word; an assertion where it is wrong. `before` has the names that were there."""
        after = contents(folder)
        if result.returncode in self.good:
            if self.verify:
                self.verify(folder)
            else:
                changed = {name for name in self.reference if after.get(name) != self.reference[name]}
                assert not changed, f"exit {result.returncode}, but not as it should be: {changed}"
                assert after.keys() == self.reference.keys(), f"other files: {after.keys() ^ self.reference.keys()}"
            return "complete"
        assert may_fail, f"does not get over it: {result.stderr}"
        for name in after:
            if not (may_leave and TEMPORARY.search(name)):
                is_whole(folder / name)
        left = [name for name in after if TEMPORARY.search(name) and name not in before]
        assert may_leave or not left, f"left behind: {left}"
        if result.returncode < 0:
            return "ended by the signal"
        assert SENTENCE.search(result.stderr) or result.returncode == 130, f"no sentence: {result}"
        assert "internal error" not in result.stderr, result.stderr
        return "incomplete, said"


class Printing(Command):
    """A command whose output is the file that it leaves."""

    def run(self, folder, environment=None, **options):
        result = super().run(folder, environment, **options)
        (folder / "stdout").write_text(result.stdout)
        return result


def verify_bundle(program, folder):
    bundles = list(folder.iterdir())
    assert len(bundles) == 1, bundles
    verify_one(program, bundles[0])


def verify_one(program, bundle):
    """A bundle is whole, and says what was lost of it."""
    assert (bundle / "report.md").exists(), "no report"
    stage = bundle / "baseline"
    subprocess.run([program, "view", "--verify", bundle], check=True, stdout=subprocess.DEVNULL)
    assert "gpuwhy_nvtx_workload" in (stage / "cmd.txt").read_text()
    with (stage / "ranges.csv").open() as table:
        rows = list(csv.DictReader(table))
    assert len(rows) == 3 + STEPS, rows
    for row in rows:
        assert int(row["start_ns"]) + int(row["duration_ns"]) == int(row["end_ns"]), row
    manifest = json.loads((bundle / "manifest.json").read_text())
    findings = str(manifest["run"]["contract"]["findings"])
    log = (stage / "log.txt").read_text().splitlines()
    assert (log[:1] == ["started"] and log[-1:] == ["ended"]) or "log_lost" in findings, f"the log has {log}, and {findings} says nothing"
    for name in ("metrics.json", "baseline/metrics.json"):
        check_durations(json.loads((bundle / name).read_text()), 60e9)


def commands(program, workload, scratch):
    """Every command that writes files, with what it needs made in `scratch`."""
    recording, other = scratch / "run.sqlite", scratch / "other.sqlite"
    make_recording(recording)
    make_recording(other)
    for rank in (1, 2, 3):
        subprocess.run([program, "analyze", recording, "--out", scratch / f"ranks/{rank}", "--run-id", f"job{rank}"],
                       check=True, stdout=subprocess.DEVNULL)

    def with_report(folder):
        subprocess.run([program, "analyze", recording, "--out", folder], check=True, stdout=subprocess.DEVNULL)

    def with_secrets(folder):
        make_recording(folder / "run.sqlite", "analyze-graph", secrets=2)
        (folder / "x.log").write_text(f"the token is\nhf_token={SECRET}\n")

    return [Command("run", [program, "run", "--passes", "baseline", "artifacts.dir={}", "--", "sh", "-c",
                            f"echo started; {workload} --steps {STEPS} --prefill-ms 1 --step-ms 1 && echo ended"],
                    verify=lambda folder: verify_bundle(program, folder)),
            Command("analyze --out", [program, "analyze", recording, "--out", "{}"]),
            Command("analyze --out, again", [program, "analyze", recording, "--out", "{}"], with_report),
            Command("analyze --with trace", [program, "analyze", recording, "--out", "{}", "--with", "trace"]),
            Command("analyze --out, two", [program, "analyze", recording, other, "--out", "{}"]),
            Command("export pftrace", [program, "export", recording, "--out", "{}/t.pftrace"]),
            Command("export chrome", [program, "export", recording, "--format", "chrome", "--out", "{}/t.json"]),
            Command("export pprof", [program, "export", recording, "--format", "pprof", "--out", "{}/k.pb.gz"]),
            Command("baseline set", [program, "baseline", "set", "main", recording, "--directory", "{}"]),
            Command("compare --out", [program, "compare", recording, "--to", other, "--out", "{}/c.html"], good=(0, 4)),
            Command("merge", [program, "merge", scratch / "ranks/1", "--out", "{}/all.gpuwhy", "--html", "{}/all.html"]),
            Command("scrub", [program, "scrub", "{}"], with_secrets)]


def analyses(program, scratch, threads):
    """One recording, analyzed with several numbers of threads, with the picture of a page and without."""
    recording = scratch / "run.sqlite"
    return [kind(f"analyze{' --out' if words else ''}, {number} threads", [program, "analyze", recording, "--threads", number, *words])
            for number in threads for kind, words in ((Printing, []), (Command, ["--out", "{}"]))]


class Outcomes:
    """Counts outcomes by command and fault; made by several threads, for most of the time is waiting."""

    def __init__(self):
        self.table, self.wrong = collections.Counter(), []

    def add(self, command, fault, judge):
        """False where it went wrong. `judge` gives a word, or nothing where the fault did not come."""
        try:
            outcome = judge()
        except (AssertionError, subprocess.SubprocessError, LookupError, ValueError, OSError, sqlite3.Error) as error:
            outcome = "WRONG"
            self.wrong.append(f"{command}, {fault}: {error!r}"[:1000])
        if outcome:
            self.table[command, fault, outcome] += 1
        return outcome

    def each(self, jobs, lanes=4):
        with concurrent.futures.ThreadPoolExecutor(lanes) as pool:
            for done in [pool.submit(*job) for job in jobs]:
                done.result()

    def want(self, pairs, came=None):
        """Faults that must have come: one that never does is never tested."""
        missing = set(pairs) - (came if came is not None else {(command, fault) for command, fault, _ in self.table})
        assert not missing, f"never came: {sorted(missing)}"

    def finish(self, least):
        for (command, fault, outcome), count in sorted(self.table.items()):
            print(f"{command:22} {fault:24} {outcome:20} {count}")
        print(f"{self.table.total()} faults, {len(self.wrong)} wrong")
        for line in self.wrong[:20]:
            print(line)
        assert not self.wrong, "see above"
        assert self.table.total() >= least, f"{least} were expected: the test shows less than it says"
        return 0


def main(check, **more):
    """Runs check(asked, scratch), with the arguments all of these tests have."""
    parser = argparse.ArgumentParser()
    for name in ("--program", "--shim", "--workload"):
        parser.add_argument(name, required=True, type=os.path.abspath)
    for name, options in more.items():
        parser.add_argument("--" + name, **options)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        sys.exit(check(asked, pathlib.Path(directory)))


def with_shim(asked, **settings):
    preload = f"{os.environ.get('LD_PRELOAD', '')} {asked.shim}".strip()
    return {"LD_PRELOAD": preload, "ASAN_OPTIONS": "verify_asan_link_order=0",
            **{f"GPUWHY_FAULT_{name}": str(value) for name, value in settings.items()}}
