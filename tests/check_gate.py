#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpuwhy compare and gate as a pipeline uses them: runs given twice, globs on both sides, files that cannot be written, reports
for other tools, and JSON that keeps to docs/schema/compare.schema.json."""
import glob
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

import testing
from recording import make_recording


class Runs:
    """A folder with six runs a side; the candidate did a fifth less work in the same time."""

    def __init__(self, program, folder):
        self.program, self.folder = program, pathlib.Path(folder)
        for side, name in (("a", "base.sqlite.sql"), ("b", "candidate.sqlite.sql")):
            for run in range(6):
                path = make_recording(self.folder / f"{side}{run}.sqlite", "compare-windows", name)
                database = sqlite3.connect(path)
                database.execute('UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET "end" = "end" - ? WHERE rowid = 1', (run + 1,))
                database.commit()
                database.close()

    def all(self, pattern):
        return sorted(glob.glob(pattern, root_dir=self.folder))

    def run(self, *words, code=0):
        result = subprocess.run([self.program, *words], capture_output=True, text=True, cwd=self.folder)
        assert result.returncode == code, (words, result.returncode, result.stdout, result.stderr)
        return result


def check_same_run(runs):
    told = runs.run("compare", "a0.sqlite", "a0.sqlite", "--to", *["b0.sqlite"] * 6, "--allow", "launches").stdout
    assert "One run per side." in told and "6 runs were given twice and count once" in told and "Verdict: inconclusive" in told, told
    shutil.copy(runs.folder / "a0.sqlite", runs.folder / "copy.sqlite")
    told = runs.run("gate", "copy.sqlite", "--baseline", "a0.sqlite", "a1.sqlite", code=6).stdout
    assert "the same run is on both sides" in told, told
    result = runs.run("baseline", "set", "twice", "a0.sqlite", "copy.sqlite", "a1.sqlite")
    assert "2 runs" in result.stdout and "note: copy.sqlite is the same run as a0.sqlite" in result.stderr, result
    result = runs.run("gate", *["a0.sqlite"] * 12, "--self-test", code=4)
    assert result.stdout.startswith("1 run: too few") and "11 runs were given twice and count once" in result.stderr, result
    # Said once, however many they are.
    told = runs.run("gate", *runs.all("a?.sqlite"), "--baseline", *runs.all("a?.sqlite"), code=6).stdout
    assert told.count("the same run is on both sides") == 2 and "6 runs (a0.sqlite and 5 more)" in told, told  # verdict and table
    # A run and its copy in a baseline are the same, too.
    assert "the same run" in runs.run("gate", "a1.sqlite", "--baseline", "twice", code=6).stdout


def check_self_test(runs):
    """Runs that are far apart: a gate on such runs sees nothing, and the self-test says so."""
    for run in range(12):
        path = make_recording(runs.folder / f"noisy{run}.sqlite", "compare-windows", "base.sqlite.sql")
        database = sqlite3.connect(path)
        database.execute('UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET "end" = "end" + ? WHERE "end" = (SELECT MAX("end") FROM '
                         'CUPTI_ACTIVITY_KIND_KERNEL)', (run * 100000,))
        database.commit()
        database.close()
    words = ["gate", *[f"noisy{run}.sqlite" for run in range(12)], "--self-test"]
    told = runs.run(*words, code=4).stdout
    assert "cannot see a change of 1 % with 6 runs per side" in told, told
    runs.run(*words, "--effect", "50")  # that it can see
    for option, value in (("--junit", "self.xml"), ("--out", "self.html"), ("--ci", "github")):
        told = runs.run(*words, option, value, code=2).stderr
        assert f"--self-test judges no build, so {option} has nothing to report" in told, told


def check_sides(runs):
    base, candidate = runs.all("a?.sqlite"), runs.all("b?.sqlite")
    told = runs.run("gate", *candidate, "--baseline", *base, "--allow", "launches", code=3).stdout
    assert "6 runs of the base, 6 of the candidate." in told, told
    told_alone = runs.run("gate", *candidate, "--baseline", *base, "--allow", "launches", "-q", code=3).stdout
    assert told_alone.startswith("regress: slower: ") and told_alone.count("\n") == 1 and told_alone.strip() in told, told_alone
    assert runs.run("compare", "a0.sqlite", "b0.sqlite", "--quiet").stdout.count("\n") == 1
    whole, short = (runs.run("report", "a0.sqlite", *words).stdout for words in ([], ["-q"]))
    assert short and whole.startswith(short.splitlines()[0]) and len(short) < len(whole), short
    # The pace decides, whatever may differ.
    assert "regress: slower: time for the same work +25" in told, told
    runs.run("baseline", "set", "main", *base)
    for words in (["--baseline", "main", *candidate], [*candidate, "--baseline", "main"], ["--baseline=main", *candidate]):
        told = runs.run("gate", "--allow", "launches", *words, code=3).stdout
        assert "6 runs of the base, 6 of the candidate." in told, told
    told = runs.run("gate", "b0.sqlite", "--baseline", "main", "b1.sqlite", code=2).stderr
    assert "on which side is b1.sqlite?" in told and "gpuwhy gate RUN... --baseline main" in told, told
    told = runs.run("gate", "--baseline", *base, *candidate, code=2).stderr
    assert "none is left to judge" in told and "come first" in told, told
    assert "empty" in runs.run("gate", "b0.sqlite", "--baseline", "", code=2).stderr
    assert "needs BUNDLE" in runs.run("gate", code=2).stderr
    told = runs.run("gate", *candidate, "--baseline", "main", "--self-test", code=2).stderr
    assert "runs of one build" in told, told


def check_files(runs):
    words = ["gate", *runs.all("b?.sqlite"), "--baseline", *runs.all("a?.sqlite"), "--allow", "launches"]
    runs.run(*words, "--out", "gate.md", "--junit", "gate.xml", code=3)
    assert (runs.folder / "gate.md").read_text().startswith("## Comparison"), "not Markdown"
    suite = xml.etree.ElementTree.parse(runs.folder / "gate.xml").getroot().find("testsuite")
    assert (suite.get("failures"), suite.get("errors")) == ("1", "0"), suite.attrib
    assert int(suite.get("tests")) == len(suite.findall("testcase")) > 1
    failed = [case for case in suite.findall("testcase") if case.find("failure") is not None]
    assert [case.get("name") for case in failed] == ["time for the same work"] and "+25" in failed[0].find("failure").get("message")
    runs.run(*words, "--out", "gate.json", code=3)
    assert json.loads((runs.folder / "gate.json").read_text())["exit_code"] == 3
    runs.run(*words, "--out", "gate.html", code=3)
    assert (runs.folder / "gate.html").read_text().lower().startswith("<!doctype html>")
    # A reader of standard output that has gone leaves no old files.
    for name in ("gate.xml", "gate.html"):
        (runs.folder / name).write_text("old")
    reader, writer = os.pipe()
    os.close(reader)
    subprocess.run([runs.program, *words, "--out", "gate.html", "--junit", "gate.xml"], stdout=writer, stderr=subprocess.DEVNULL, cwd=runs.folder)
    os.close(writer)
    assert "old" not in ((runs.folder / "gate.xml").read_text(), (runs.folder / "gate.html").read_text())
    # A file that cannot be written hides no verdict.
    for extra in (["--out", "no/such/gate.html"], ["--junit", "no/such/gate.xml"]):
        result = runs.run(*words, *extra, code=3)
        assert "Verdict: regress" in result.stdout and "no/such" in result.stderr, result
    # Nor does it take another file with it, and no device is replaced by one.
    (runs.folder / "gate.xml").unlink()
    runs.run(*words, "--out", "no/such/gate.html", "--junit", "gate.xml", code=3)
    assert (runs.folder / "gate.xml").exists()
    (runs.folder / "null").symlink_to("/dev/null")
    result = runs.run(*words, "--out", "null", code=3)
    assert "a device or a pipe" in result.stderr and (runs.folder / "null").is_symlink(), result
    result = runs.run("compare", "a0.sqlite", "b0.sqlite", "--out", "no/such/page.html", code=1)
    assert "Verdict: " in result.stdout and "no/such" in result.stderr, result
    # Runs that cannot be compared are an error, not a failure of a metric.
    runs.run("gate", "b0.sqlite", "--baseline", "a0.sqlite", "--junit", "invalid.xml", code=6)
    suite = xml.etree.ElementTree.parse(runs.folder / "invalid.xml").getroot().find("testsuite")
    assert (suite.get("failures"), suite.get("errors")) == ("0", "1"), suite.attrib
    result = runs.run(*words, "--ci", "gitlab", code=3)
    lines = result.stdout.splitlines()
    assert lines[0] == "# TYPE gpuwhy gauge" and lines[-1] == "# EOF" and lines[1].startswith('gpuwhy{name="pace",measure="latency_ns"} '), lines
    assert runs.run("report", "a0.sqlite", "--ci", "gitlab").stdout.endswith("# EOF\n")


def check_refusals(runs):
    file = runs.folder / ".gpuwhy/baselines/newer.json"
    runs.run("baseline", "set", "newer", "a0.sqlite", "a1.sqlite")
    kept = json.loads(file.read_text())
    file.write_text(json.dumps(kept | {"schema_version": 2}))
    told = runs.run("gate", "b0.sqlite", "--baseline", "newer", code=1).stderr
    assert "written by a newer gpuwhy (schema_version 2)" in told, told
    file.unlink()
    runs.run("analyze", "b0.sqlite", "--out", "bundle")
    runs.run("compare", "a0.sqlite", "bundle")
    (runs.folder / "bundle/inputs.yaml").write_text("{}\n")  # as `run` writes, with a manifest after all else
    told = runs.run("gate", "bundle", "--baseline", "a0.sqlite", code=7).stderr
    assert "bundle is not a whole bundle: its manifest.json is missing" in told, told


def check_folders(runs):
    """What `run --repeat --out DIR` wrote stands for its runs, whichever of its folders is named."""
    for side in ("a", "b"):
        for run in range(6):
            runs.run("analyze", f"{side}{run}.sqlite", "--out", f"repeats-{side}/20261118-000000-repeats/a/run-{run}")
    for base in ("repeats-a", "repeats-a/20261118-000000-repeats", "repeats-a/20261118-000000-repeats/"):
        told = runs.run("gate", "repeats-b", "--baseline", base, "--allow", "launches", code=3).stdout
        assert "6 runs of the base, 6 of the candidate." in told, told
    assert "6 runs of the base" in runs.run("compare", "repeats-a", "repeats-b", "--allow", "launches").stdout
    # Runs that failed, and a folder in which none was made.
    runs.run("analyze", "a0.sqlite", "--out", "failed/20261118-000001-repeats/warmup/run-1")
    told = runs.run("gate", "failed", "--baseline", "repeats-a", code=7).stderr
    assert "has no run: its warm-up failed" in told and "warmup/run-1 says why" in told, told
    (runs.folder / "nothing").mkdir()
    assert "is empty" in runs.run("gate", "repeats-a", "--baseline", "nothing", code=7).stderr
    # An empty folder among bundles, as part of their folder and by a glob.
    bundles = "repeats-b/20261118-000000-repeats/a"
    shutil.copytree(runs.folder / bundles, runs.folder / "mixed")
    (runs.folder / "mixed/run-9").mkdir()
    for words in (["mixed"], [f"mixed/run-{run}" for run in (0, 1, 2, 3, 4, 5, 9)]):
        assert "mixed/run-9 is empty" in runs.run("gate", *words, "--baseline", "repeats-a", code=7).stderr
    # Recordings in a folder are named by a glob.
    (runs.folder / "recordings").mkdir()
    shutil.copy(runs.folder / "a0.sqlite", runs.folder / "recordings/a0.sqlite")
    told = runs.run("gate", "recordings", "--baseline", "repeats-a", code=2).stderr
    assert "recordings is a folder without bundles" in told and "give recordings/*.sqlite" in told, told


def check_errors(runs):
    """An error is in the files that a pipeline reads, and budgets that are none are all refused alike."""
    for name, text, told in (("missing", None, "missing.yaml"), ("twice", "budgets:\n  a.b: {at_most: 1}\n  a.b: {at_most: 2}\n", "twice.yaml"),
                             ("syntax", "budgets: {", "syntax.yaml"), ("list", "[1]", "not a budget file"),
                             ("unit", "budgets:\n  capture.kernel_ns: {at_most: 12 kg}\n", "a time with its unit, as 12 ms"),
                             ("bare", "budgets:\n  capture.kernel_ns: {at_most: '12'}\n", "a time with its unit"),
                             ("percent", "budgets:\n  devices[device=cuda:0].busy_fraction: {at_most: 80}\n", "a percentage, as 80 %"),
                             ("above", "budgets:\n  devices[device=cuda:0].busy_fraction: {at_least: 150 %}\n", "a percentage, as 80 %"),
                             ("never", "budgets:\n  capture.kernel_ns: {at_most: 1 ms, at_least: 2 s}\n", "at_most is below at_least")):
        if text is not None:
            (runs.folder / f"{name}.yaml").write_text(text)
        words = ["gate", "b0.sqlite", "--baseline", "a0.sqlite", "--budget", f"{name}.yaml"]
        result = runs.run(*words, "--junit", "error.xml", "--out", "error.json", "--json", code=2)
        assert told in result.stderr, (name, result.stderr)
        document = json.loads((runs.folder / "error.json").read_text())
        assert document["schema"] == "gpuwhy.error" and document["exit_code"] == 2 and told in document["error"], document
        assert json.loads(result.stdout) == document, result.stdout
        suite = xml.etree.ElementTree.parse(runs.folder / "error.xml").getroot().find("testsuite")
        assert (suite.get("tests"), suite.get("errors")) == ("1", "1"), suite.attrib
        assert told in suite.find("testcase").find("error").get("message")
        runs.run(*words, "--out", "error.md", code=2)
        assert "Nothing was judged" in (runs.folder / "error.md").read_text()
        (runs.folder / "error.html").write_text("of an earlier run")
        runs.run(*words, "--out", "error.html", code=2)
        page = (runs.folder / "error.html").read_text()
        assert "Nothing was judged" in page and "earlier" not in page, page[-400:]
    (runs.folder / "units.yaml").write_text("budgets:\n  capture.kernel_ns: {at_most: 1.5 s}\n"
                                            "  devices[device=cuda:0].busy_fraction: {at_least: 0.01 %}\n")
    told = runs.run("gate", "b0.sqlite", "--budget", "units.yaml").stdout
    assert "at most 1.50 s" in told, told
    (runs.folder / "tight.yaml").write_text("budgets:\n  capture.duration_ns: {at_most: 1 ns}\n")
    told = runs.run("gate", "b0.sqlite", "--budget", "tight.yaml", "--budget", "units.yaml", code=3).stdout
    assert "at most 1.50 s" in told and "OUTSIDE" in told, told
    told = runs.run("gate", "b0.sqlite", "--budget", "tight.yaml", "--budget", "tight.yaml", code=2).stderr
    assert "an earlier --budget limits it already" in told, told
    told = runs.run("gate", "b0.sqlite", "--baseline", "a0.sqlite", "--ci", "github", "--json", code=2).stderr
    assert "--ci github and --json would both be written" in told, told
    # A job that runs on GitHub shows the error at the job and in its summary.
    result = runs.run("gate", "b0.sqlite", "--budget", "missing.yaml", "--ci", "github", code=2)
    assert result.stdout.startswith("## Comparison") and "Nothing was judged" in result.stdout, result.stdout
    assert "::error title=gpuwhy gate::" in result.stderr and "missing.yaml" in result.stderr, result.stderr
    result = runs.run("gate", "b0.sqlite", "--budget", "tight.yaml", "--ci", "github", code=3)
    assert "::error title=gpuwhy gate::regress: outside its limit" in result.stderr, result.stderr
    result = runs.run("gate", "a1.sqlite", "--baseline", "a0.sqlite", "--ci", "github", code=4)
    assert "::warning title=gpuwhy gate::inconclusive: " in result.stderr and "\n" not in result.stderr.strip(), result.stderr
    # Words that are refused leave no file of an earlier job.
    for wrong in (["--bogus"], ["--top", "none"], ["--ci", "travis"]):
        for name in ("stale.xml", "stale.json"):
            (runs.folder / name).write_text("of an earlier job")
        result = runs.run("gate", "b0.sqlite", "--junit=stale.xml", *wrong, "--out", "stale.json", code=2)
        assert "1" == xml.etree.ElementTree.parse(runs.folder / "stale.xml").getroot().get("errors"), wrong
        document = json.loads((runs.folder / "stale.json").read_text())
        assert document["exit_code"] == 2 and wrong[-1].strip("-") in document["error"], document
    result = runs.run("gate", "b0.sqlite", "--bogus", "--json", code=2)
    assert json.loads(result.stdout)["exit_code"] == 2, result.stdout
    result = runs.run("compare", "a0.sqlite", "b0.sqlite", "--bogus", "--out", "stale.json", code=2)
    assert "bogus" in (runs.folder / "stale.json").read_text()
    told = runs.run("gate", "b0.sqlite", "--budget", "tight.yaml", "--junit", "same.xml", "--out", "./same.xml", code=2).stderr
    assert "--out and --junit both name ./same.xml" in told, told
    assert "gate: --junit needs a value" in runs.run("gate", "b0.sqlite", "--junit", code=2).stderr
    told = runs.run("gate", "b0.sqlite", "--budget", "tight.yaml", "--effect", "1000", code=2).stderr
    assert "--effect takes a percentage above 0 and below 1000, not '1000'" in told, told
    # What a change is worth needs a price.
    assert "not a price" in runs.run("compare", "a0.sqlite", "b0.sqlite", "--gpu-hour-price", "much", code=2).stderr


def check_nothing_measured(runs):
    """Of a run that failed or recorded nothing no value passes its limit."""
    (runs.folder / "tpot.yaml").write_text("budgets:\n  aggregates.tpot.p50_ns: {at_most: 12 ms}\n")
    (runs.folder / "length.yaml").write_text("budgets:\n  capture.duration_ns: {at_most: 200 s}\n")
    runs.run("run", "--passes", "baseline", "--out", "bare", "--", "true")
    told = runs.run("gate", "bare", "--budget", "length.yaml", code=2).stderr
    assert "the budget limits capture.duration_ns, which no run has" in told, told
    runs.run("run", "--passes", "baseline", "--out", "broken", "--", "false", code=7)
    told = runs.run("gate", "broken", "--budget", "tpot.yaml", code=7).stdout
    assert "failed" in told, told


def check_limits(runs):
    """Limits of values that not every run has, and the busy share of the first line of a report."""
    database = sqlite3.connect(make_recording(runs.folder / "single.sqlite", "compare-windows", "base.sqlite.sql"))
    database.execute("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE deviceId = 1")
    database.commit()
    database.close()
    (runs.folder / "second.yaml").write_text('budgets:\n  "devices[device=cuda:1].busy_fraction": {at_most: 50 %}\n')
    for order in (["a0.sqlite", "single.sqlite"], ["single.sqlite", "a0.sqlite"]):
        told = runs.run("gate", *order, "--budget", "second.yaml", code=3).stdout
        first = told.splitlines()[0]
        assert first.startswith("devices[device=cuda:1].busy_fraction (of the whole recording) "), first
        assert "(in 1 of 2 runs, at most 50.0 %)" in first and "1 of 2 runs has no value" in told, told
    (runs.folder / "second.yaml").write_text('budgets:\n  "devices[device=cuda:1].busy_fraction": {at_least: 0.01 %}\n')
    told = runs.run("gate", "a0.sqlite", "single.sqlite", "--budget", "second.yaml", code=4).stdout
    assert "1 of 2 runs has no value" in told, told
    # Without a run that has it, the hint names the rows there are.
    told = runs.run("gate", "single.sqlite", "--budget", "second.yaml", code=2).stderr
    assert "which no run has" in told, told
    told = runs.run("explain", "single.sqlite", "devices[device=cuda:1].busy_fraction", code=2).stderr
    assert "there are: devices[device=cuda:0]" in told, told
    told = runs.run("explain", "single.sqlite", "devices[7].busy_fraction", code=2).stderr
    assert "devices has 2 rows, counted from 0" in told or "devices has 1 row, counted from 0" in told, told
    # The share that the first line of a report gives is a key of its own.
    path = runs.folder / "busy.sqlite"
    subprocess.run([sys.executable, pathlib.Path(__file__).parent / "make_engine_trace.py", path, "--depth", "1", "--steps", "12"],
                   check=True, capture_output=True)
    metrics = json.loads(runs.run("analyze", "busy.sqlite", "--json").stdout)
    shares = {row["stage"]: f"{row['busy_fraction'] * 100:.1f} %" for row in metrics["ledgers"] if row["device"] == "cuda:0"}
    said = metrics["verdict"].split("cuda:0 was busy ")[1].split(" of ")[0]
    assert said in shares.values(), (said, shares)
    stage = next(name for name, share in shares.items() if share == said and name != "all")
    (runs.folder / "busy.yaml").write_text(f'budgets:\n  "ledgers[stage={stage},device=cuda:0].busy_fraction": {{at_least: 1 %}}\n')
    assert said in runs.run("gate", "busy.sqlite", "--budget", "busy.yaml").stdout
    # A side that used no GPU.
    make_recording(runs.folder / "cpu.sqlite", "analyze-nocuda")
    for words in (["cpu.sqlite", "--baseline", "a0.sqlite"], ["a0.sqlite", "--baseline", "cpu.sqlite"]):
        told = runs.run("gate", *words, code=6).stdout
        assert told.startswith("Verdict: invalid: not comparable: ") and "recorded no kernel" in told.splitlines()[0], told


def check_baselines(runs):
    folder = runs.folder / ".gpuwhy/baselines"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bad.json").write_text('{"x":')
    told = runs.run("gate", "a0.sqlite", "--baseline", "bad", code=1).stderr
    assert "bad.json is damaged, or not a baseline" in told and "gpuwhy baseline set bad BUNDLE..." in told, told
    (folder / "bad.json").unlink()
    """One bad file among baselines is named, and the others are listed."""
    runs.run("baseline", "set", "good", "a0.sqlite", "a1.sqlite", "--directory", "kept")
    (runs.folder / "kept/torn.json").write_text('{"schema": "gpuwhy.baseline", "sch')
    result = runs.run("baseline", "list", "--directory", "kept")
    assert "good" in result.stdout and "torn" in result.stdout and "torn.json cannot be used" in result.stderr, result
    rows = json.loads(runs.run("baseline", "list", "--directory", "kept", "--json").stdout)["baselines"]
    assert [(row["name"], row["runs"], row["error"] is None) for row in rows] == [("good", 2, True), ("torn", None, False)], rows


def check_json(runs, schema):
    try:
        import jsonschema
    except ImportError:
        jsonschema = None
    documents = [runs.run("compare", "a0.sqlite", "b0.sqlite", "--json"),
                 runs.run("gate", *runs.all("b?.sqlite"), "--baseline", *runs.all("a?.sqlite"), "--allow", "launches", "--json", code=3)]
    for name, case in (("llm", "compare-llm"), ("operators", "compare-operators"), ("failed", "compare-failed-run")):
        for side in ("base", "candidate"):
            if (pathlib.Path(__file__).parent / f"golden/{case}/{side}.sqlite.sql").exists():
                make_recording(runs.folder / f"{name}-{side}.sqlite", case, f"{side}.sqlite.sql")
        if (runs.folder / f"{name}-base.sqlite").exists():
            documents.append(runs.run("compare", f"{name}-base.sqlite", f"{name}-candidate.sqlite", "--json"))
    for text in (result.stdout for result in documents):
        document = json.loads(text)
        assert list(document)[:2] == ["schema", "schema_version"] and document["schema"] == "gpuwhy.compare"
        if jsonschema:
            jsonschema.Draft202012Validator(schema).validate(document)
            for key in ("exit_code", "repeated_runs"):
                wrong = {name: value for name, value in document.items() if name != key}
                assert not jsonschema.Draft202012Validator(schema).is_valid(wrong), key
    assert [json.loads(result.stdout)["exit_code"] for result in documents[:2]] == [6, 3]
    runs.run("baseline", "set", "named", "a0.sqlite", "a1.sqlite")
    for words, schema_name, key in ((["table", "kernels", "a0.sqlite"], "table", "rows"), (["table", "a0.sqlite"], "table", "rows"),
                                    (["baseline", "list"], "baselines", "baselines"),
                                    (["baseline", "show", "named"], "baseline_runs", "runs"), (["explain", "launch_bound"], "explain", "means"),
                                    (["explain", "a0.sqlite", "capture.kernel_ns"], "explain", "value")):
        document = json.loads(runs.run(*words, "--json").stdout)
        assert list(document)[:2] == ["schema", "schema_version"] and document["schema"] == f"gpuwhy.{schema_name}", (words, document)
        assert key in document, (words, list(document))


def check_engine(runs):
    """An engine that runs ahead of the GPU: its marks are not the time of a step."""
    for name, options in (("ahead", "--depth 1 --steps 12"), ("slower", "--depth 1 --steps 12 --layers 6")):
        path = runs.folder / f"{name}.sqlite"
        subprocess.run([sys.executable, pathlib.Path(__file__).parent / "make_engine_trace.py", path, *options.split()],
                       check=True, capture_output=True)
    document = json.loads(runs.run("compare", "ahead.sqlite", "slower.sqlite", "--json").stdout)
    keys = [row["key"] for row in document["metrics"]]
    assert any(key.startswith("steps[stage=") for key in keys), keys
    gated = [row["key"] for row in document["metrics"] if row["gated"]]
    assert gated and not any(key.endswith("host_median_ns") for key in gated), gated


def check_names(runs):
    """A recording that does not name its GPU, and one whose GPU has another number."""
    for name, change in (("unnamed", "UPDATE TARGET_INFO_GPU SET name = ''"),
                         ("one", "DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE deviceId = 1"),
                         ("other", "DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE deviceId = 0")):
        make_recording(runs.folder / f"{name}.sqlite", "compare-windows", "base.sqlite.sql")
        database = sqlite3.connect(runs.folder / f"{name}.sqlite")
        database.execute(change)
        database.commit()
        database.close()
    words = ["compare", "unnamed.sqlite", "b0.sqlite", "--json"]
    facts = [row["fact"] for row in json.loads(runs.run(*words).stdout)["fingerprint"]]
    assert "gpu" in facts, facts
    facts = [row["fact"] for row in json.loads(runs.run(*words, "--gpu-name", "H100-SXM5-80GB").stdout)["fingerprint"]]
    assert "gpu" not in facts, facts
    told = runs.run("compare", "one.sqlite", "other.sqlite").stdout
    assert "cuda:0 -> cuda:1" in told, told
    told = runs.run("compare", "b1.sqlite", "other.sqlite").stdout
    assert "whole recording  cuda:1" in told, told


def main():
    options = testing.arguments("program", "source")
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(options.program, folder)
        check_same_run(runs)
        check_self_test(runs)
        check_sides(runs)
        check_files(runs)
        check_refusals(runs)
        check_json(runs, json.loads((options.source / "docs/schema/compare.schema.json").read_text()))
        check_names(runs)
        check_engine(runs)
        check_folders(runs)
        check_errors(runs)
        check_nothing_measured(runs)
        check_limits(runs)
        check_baselines(runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
