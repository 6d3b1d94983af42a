#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Comparison of what two programs write, byte by byte: a change of the code that should change no answer is proven by it.

  same_bytes.py BEFORE AFTER        two gpuwhy programs; BEFORE may be a git revision, which is then built in a git worktree
  same_bytes.py HEAD build/release/gpuwhy --only 'golden/*' --jobs 2
  same_bytes.py --list              the cases: recordings of $GPUWHY_SHARED/corpus, pairs of them, all golden cases, two fleets

Both run the same commands, one after the other, in folders of the same name. Compared are both streams, exit codes, and every file
that a command writes. The programs' own paths, versions and commits are masked. Nothing is stored: not what the programs write, nor
hashes of it.

A difference is accepted if a line of announced.txt names the output by a glob, and the reason. A line that names an output without a
difference is an error: it leaves with the commit that follows.

What it cannot mask: a version inside what is compressed or has a checksum. summary.gpuwhy is such a place, so between two versions
its lines are announced.
"""
import argparse
import collections
import concurrent.futures
import contextlib
import fnmatch
import functools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import run_golden

TESTS = pathlib.Path(__file__).resolve().parent
ANNOUNCED = TESTS / "announced.txt"
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "dumb", "COLUMNS": "100"}
SECONDS = 300  # of one command: one that takes longer hangs
MAX_BYTES = 4 << 20  # of a recording, so that all of them take minutes
MAX_TABLES = 3  # of a folder of the corpus

# What is asked of a file, by the end of its name.
RECORDING = {
    "terminal": "analyze FILE",
    "json": "analyze FILE --json",
    "md": "report FILE --format md",
    "out": "analyze FILE --out out --with trace",
    "parquet": "export FILE --format parquet --out tables",
    "chrome": "export FILE --format chrome --out chrome.json",
    "pprof": "export FILE --format pprof --out kernels.pb.gz",
}
COUNTERS = {"terminal": "ncu FILE", "json": "ncu FILE --each --json", "csv": "ncu FILE --format csv"}
TABLE = {"terminal": "analyze FILE", "json": "analyze FILE --json", "ncu": "ncu FILE"}
ASKED = {".sqlite": RECORDING, ".json": RECORDING, ".json.gz": RECORDING, ".ncu-rep": COUNTERS, ".csv": TABLE, ".txt": TABLE}

COMPARED = {
    "terminal": "compare BASE CANDIDATE",
    "json": "compare BASE CANDIDATE --all-metrics --json",
    "md": "compare BASE CANDIDATE --format md",
    "page": "compare BASE CANDIDATE --out page.html --quiet",
}
# Before and after, the same on other GPUs or with other settings, and two that are not comparable.
PAIRS = [
    ("nsys_sqlite/v2026.2.1_nsysai_mfu_h100x2_nccl_before.sqlite", "nsys_sqlite/v2026.2.1_nsysai_mfu_h100x2_nccl_after.sqlite"),
    ("nsys_sqlite/v2024.6.2_cs336_lm2.7B_a100_nonvtx.sqlite", "nsys_sqlite/v2024.6.2_cs336_lm2.7B_a100_nvtx.sqlite"),
    ("nsys_sqlite/v2024.6.2_cs336_lm2.7B_a100_clean.sqlite", "nsys_sqlite/v2024.6.2_cs336_lm2.7B_a100_cudagraph.sqlite"),
    ("nsys_sqlite/v2020.3.4_beast_report1.sqlite", "nsys_sqlite/v2020.3.4_beast_report2.sqlite"),
    ("unseen/cudatut_fused_fp32_pageable.sqlite", "unseen/cudatut_fused_fp16_pageable.sqlite"),
    ("kineto/hta_trace_diff_control.json.gz", "unseen/hta_trace_diff_test.json.gz"),
    ("kineto/kineto_resnet50_w0_2021.pt.trace.json.gz", "kineto/kineto_resnet50_nw4_2021.pt.trace.json.gz"),
    ("kineto/tracelens_mi300_qwen1.5-0.5b.json.gz", "kineto/tracelens_h100_qwen1.5-0.5b.json.gz"),
    ("kineto/tracelens_sglang_qwen3-8b_prefilldecode.json.gz", "kineto/tracelens_sglang_qwen3-8b_decode.json.gz"),
    ("unseen/part_bs2.pt.trace.json.gz", "unseen/part_bs256.pt.trace.json.gz"),
    ("unseen/incredere_fp32.pt.trace.json.gz", "unseen/incredere_amp.pt.trace.json.gz"),
    ("kineto/gpumode_profiler_trace.json", "nsys_sqlite/v2024.6.2_cs336_small_a100.sqlite"),
]

MAKERS = ("gpuwhy_make_ranks", "gpuwhy_make_history")
FLEETS = {
    "ranks": (f"{MAKERS[0]} job 16 --kernels 20 --steps 10 --run made", {
        "terminal": "merge job --out all.gpuwhy --html report.html",
        "json": "merge job --top all --json",
        "again": "merge all.gpuwhy --json",
    }),
    "history": (f"{MAKERS[1]} job 4 6 20", {
        **{f"{question}{'.json' if form else ''}": f"fleet {question} --to job {form}"
           for question in ("top", "layers", "stragglers", "regressions", "trend", "status") for form in ("", "--json")},
        "parquet": "fleet export job --out tables",
    }),
}

# `arrange` fills an empty folder; it returns the environment, and the commands by their names: the words after the program's.
Case = collections.namedtuple("Case", "name arrange weight", defaults=(0,))


def filled(lines, **names):
    return {key: [str(names.get(word, word)) for word in line.split()] for key, line in lines.items()}


def asked(lines, **names):
    """What arranges commands without input."""
    return lambda _: (ENVIRONMENT, filled(lines, **names))


def recordings(corpus):
    """Sorted by folder and name, of those that the program opens; tables are many and alike, so the first ones of a folder."""
    num_tables = collections.Counter()
    for path in sorted(path for path in corpus.rglob("*") if path.is_file() and path.stat().st_size <= MAX_BYTES):
        lines = next((lines for suffix, lines in ASKED.items() if path.name.endswith(suffix)), None)
        num_tables[path.parent] += lines is TABLE
        if lines and (lines is not TABLE or num_tables[path.parent] <= MAX_TABLES):
            yield Case(str(path.relative_to(corpus)), asked(lines, FILE=path), path.stat().st_size)


def pairs(corpus):
    for base, candidate in ((corpus / before, corpus / after) for before, after in PAIRS):
        yield Case(f"compare/{base.name}-{candidate.name}", asked(COMPARED, BASE=base, CANDIDATE=candidate),
                   base.stat().st_size + candidate.stat().st_size)


def goldens():
    def arrange(folder, case):
        words, environment = run_golden.arrange(case, folder)
        return environment, {"cmd": words}

    for case in sorted(path.parent for path in TESTS.glob("golden/*/cmd")):
        yield Case(f"golden/{case.name}", functools.partial(arrange, case=case))


def fleets(makers):
    def arrange(folder, made, lines):
        maker, *words = made.split()
        subprocess.run([makers / maker, *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        return ENVIRONMENT, filled(lines)

    for name, (made, lines) in FLEETS.items():
        yield Case(f"fleet/{name}", functools.partial(arrange, made=made, lines=lines))


def all_cases(makers):
    """Without the corpus, fewer."""
    corpus = pathlib.Path(os.environ.get("GPUWHY_SHARED") or "/nonexistent") / "corpus"
    of_corpus = [*recordings(corpus), *pairs(corpus)] if corpus.is_dir() else []
    return [*of_corpus, *goldens(), *fleets(makers)], corpus.is_dir()


class Program:
    """A program, and what it says about itself: its folder, version and commit."""

    def __init__(self, path):
        self.path = pathlib.Path(path).resolve()
        text = subprocess.run([self.path, "--version"], capture_output=True, text=True, check=True, cwd="/").stdout
        version, commit = re.match(r"gpuwhy (\S+) \((?:commit )?(.*)\)", text).groups()
        self.facts = {"FOLDER": str(self.path.parent), "VERSION": version, "COMMIT": commit}
        self.masks = []

    def mask(self, other):
        """Only what differs: a version that both have needs no mask, and may stand for something else."""
        self.masks = [(fact.encode(), word.encode()) for word, fact in self.facts.items() if fact != other.facts[word]]

    def masked(self, data):
        for fact, word in self.masks:
            data = data.replace(fact, word)
        return data

    def outputs(self, case, folder):
        """What a case writes, by name: streams and exit code of each command, and every file that is new or changed."""
        folder.mkdir()
        environment, commands = case.arrange(folder)
        given = files_in(folder)
        found = {}
        for name, words in commands.items():
            try:
                result = subprocess.run([self.path, *words], cwd=folder, env=environment, capture_output=True,
                                        stdin=subprocess.DEVNULL, timeout=SECONDS)
                found |= {f"{name}.stdout": result.stdout, f"{name}.stderr": result.stderr, f"{name}.code": b"%d" % result.returncode}
            except subprocess.TimeoutExpired:
                found[f"{name}.code"] = b"none after %d s" % SECONDS
        found |= {path: data for path, data in files_in(folder).items() if given.get(path) != data}
        shutil.rmtree(folder)
        return {f"{case.name}/{path}": self.masked(data) for path, data in found.items()}


def files_in(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def difference(before, after):
    """In words, with the text around the first byte that differs; empty: there is none."""
    if before == after:
        return ""
    if before is None or after is None:
        return f"written by {'AFTER' if before is None else 'BEFORE'} alone"
    at = next((i for i, (left, right) in enumerate(zip(before, after)) if left != right), min(len(before), len(after)))
    begin = max(at - 60, 0)
    texts = [data[begin:at + 60].decode(errors="backslashreplace").replace("\n", "\\n") for data in (before, after)]
    return f"byte {at} of {len(before)} and {len(after)}\n  before: {texts[0]}\n  after:  {texts[1]}"


def compared(before, after, cases, jobs, scratch):
    """Every output of both programs, with the difference in words."""
    before.mask(after)
    after.mask(before)

    def examine(item):
        number, case = item
        sides = [program.outputs(case, scratch / str(number)) for program in (before, after)]
        return {name: difference(*(side.get(name) for side in sides)) for name in sorted(sides[0].keys() | sides[1].keys())}

    # The largest first, so that the last one to end is a small one.
    ordered = sorted(enumerate(cases), key=lambda item: -item[1].weight)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        found = dict(zip((number for number, _ in ordered), pool.map(examine, ordered)))
    return {name: text for _, outputs in sorted(found.items()) for name, text in outputs.items()}


def announcements(path):
    """Globs of outputs that may differ, each with the reason."""
    found = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        glob, _, reason = line.strip().partition(" ")
        if glob and not glob.startswith("#"):
            if not reason.strip():
                sys.exit(f"{path}: {glob} has no reason")
            found[glob] = reason.strip()
    return found


def judged(outputs, announced, is_whole):
    """Problems in words, and the number of differences that were announced. Of a part of the cases, lines that name no output of it
    are not judged."""
    problems, used = [], collections.Counter()
    for name, text in outputs.items():
        globs = [glob for glob in announced if fnmatch.fnmatchcase(name, glob)]
        used.update(dict.fromkeys(globs, 1 if text else 0))
        if text and not globs:
            problems.append(f"{name} differs: {text}")
    for glob in announced:
        if not used[glob] and (is_whole or glob in used):
            problems.append(f"{ANNOUNCED.name}: {glob} names no output that differs")
    return problems, sum(bool(text) for text in outputs.values()) - sum(" differs: " in problem for problem in problems)


def git(*words):
    return subprocess.run(["git", "-C", TESTS, *words], capture_output=True, text=True)


@contextlib.contextmanager
def program_of(word):
    """The path of a program: WORD itself, or built from the revision WORD, in a worktree that does not stay."""
    if pathlib.Path(word).is_file():
        yield word
        return
    commit = git("rev-parse", "--verify", "--quiet", f"{word}^{{commit}}").stdout.strip()
    if not commit:
        sys.exit(f"same_bytes: {word} is neither a program nor a revision")
    tree = TESTS.parent / "build/same_bytes" / commit[:12]
    environment = {**os.environ, "CCACHE_BASEDIR": str(tree), "CCACHE_NOHASHDIR": "1"}
    try:
        git("worktree", "remove", "--force", tree)  # of a run that was killed
        if git("worktree", "add", "--detach", tree, commit).returncode:
            sys.exit(f"same_bytes: git cannot make the worktree {tree}")
        # Warnings are errors, so that ccache has what other builds compiled.
        for step in (["--preset", "release", "-DGPUWHY_WERROR=ON"], ["--build", "--preset", "release", "--target", "gpuwhy", *MAKERS]):
            made = subprocess.run(["cmake", *step], cwd=tree, env=environment, capture_output=True, text=True)
            if made.returncode:
                sys.exit(f"same_bytes: {word} cannot be built\n{made.stdout[-4000:]}{made.stderr}")
        yield tree / "build/release/gpuwhy"
    finally:
        git("worktree", "remove", "--force", tree)


# The program, but for the last digit of what it prints or of a file that it writes.
LIAR = """#!{python}
import pathlib, re, subprocess, sys
result = subprocess.run(["{program}", *sys.argv[1:]], stdout=subprocess.PIPE)
change = lambda data: re.sub(rb"\\d(?=\\D*$)", lambda digit: b"%d" % (9 - int(digit[0])), data)
name = "{name}"
if "--version" not in sys.argv:
    for path in pathlib.Path.cwd().rglob(name) if name else ():
        path.write_bytes(change(path.read_bytes()))
    result.stdout = result.stdout if name else change(result.stdout)
sys.stdout.buffer.write(result.stdout)
sys.exit(result.returncode)
"""


def self_test(program, makers, scratch):
    """Plants a changed digit in standard output and in a file. Each must be found, and nothing else."""
    cases = [case for case in [*goldens(), *fleets(makers)] if case.name in ("golden/analyze-out", "golden/table-kernels-csv", "fleet/ranks")]
    assert len(cases) == 3, cases
    for number, (name, expected) in enumerate([(None, set()), ("metrics.json", {"golden/analyze-out/report/metrics.json"}),
                                               ("", {"golden/analyze-out/cmd.stdout", "golden/table-kernels-csv/cmd.stdout", *(
                                                   f"fleet/ranks/{key}.stdout" for key in FLEETS["ranks"][1])})]):
        liar = scratch / f"liar{number}"
        liar.write_text(LIAR.format(python=sys.executable, program=program, name=name))
        liar.chmod(0o755)
        outputs = compared(Program(program), Program(program if name is None else liar), cases, 2, scratch)
        found = {output for output, text in outputs.items() if text}
        assert found == expected and len(outputs) > 20, f"planted {name!r}: {expected} was expected, and {found} was found"
        assert len(judged(outputs, {}, True)[0]) == len(expected)
        assert judged(outputs, {glob: "planted" for glob in expected}, True) == ([], len(expected))
        assert len(judged(outputs, {"golden/*/cmd.stderr": "no difference", "absent/*": "no output"}, True)[0]) == len(expected) + 2
        assert len(judged(outputs, {"golden/*/cmd.stderr": "no difference", "absent/*": "no output"}, False)[0]) == len(expected) + 1
    (scratch / "announced").write_text("# a comment\n\ngolden/*  the reason\n")
    assert announcements(scratch / "announced") == {"golden/*": "the reason"}
    print(f"a changed digit is found on standard output and in a file, among {len(outputs)} outputs")


def main():
    parser = argparse.ArgumentParser(description="Compares what two gpuwhy programs write, byte by byte.")
    parser.add_argument("before", nargs="?", help="a program or a git revision")
    parser.add_argument("after", nargs="?", help="a program")
    parser.add_argument("--only", metavar="GLOB", default="*", help="only cases of this name, as 'golden/*'")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    parser.add_argument("--self-test", metavar="PROGRAM", help="plant changed bytes in what this program writes, and find them")
    options = parser.parse_args()
    after = pathlib.Path(options.self_test or options.after or "gpuwhy").resolve()
    makers = after.parent / "tests"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("same_bytes: terminated"))
    with tempfile.TemporaryDirectory(prefix="same-bytes-") as folder:
        if options.self_test:
            return self_test(after, makers, pathlib.Path(folder))
        cases, has_corpus = all_cases(makers)
        cases = [case for case in cases if fnmatch.fnmatchcase(case.name, options.only)]
        if options.list:
            print(*(case.name for case in cases), sep="\n")
            return 0
        if not options.after or not cases:
            parser.error("two programs are compared: BEFORE AFTER" if cases else f"no case is called {options.only}")
        if any(case.name.startswith("fleet/") for case in cases) and not all((makers / name).exists() for name in MAKERS):
            sys.exit(f"same_bytes: {makers} has not both of {' and '.join(MAKERS)}: build them, or leave the fleets out by --only")
        with program_of(options.before) as before:
            outputs = compared(Program(before), Program(after), cases, options.jobs, pathlib.Path(folder))
    problems, num_announced = judged(outputs, announcements(ANNOUNCED), options.only == "*" and has_corpus)
    for problem in problems:
        print(problem)
    print(f"{len(outputs)} outputs of {len(cases)} cases: {len(problems)} problems, {num_announced} announced differences")
    if not has_corpus:
        print("SKIPPED, all recordings and pairs of them: GPUWHY_SHARED names no folder with a corpus")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
