#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checker of metrics.json against docs/schema/metrics.schema.json, with Debian's python3-jsonschema.

Goldens, whatever the corpus holds, and files given by name. Every number must also have a row in the table of keys of
docs/metrics.md, with a unit, a formula and known sources, which `gpuwhy explain` prints too.

  check_schema.py --source DIR [--program GPUWHY --corpus DIR] [FILE...]
  check_schema.py --source DIR --self-test     files with one thing wrong must be refused
"""
import argparse
import copy
import json
import pathlib
import re
import subprocess
import sys

try:
    import jsonschema
except ImportError:
    system = "/usr/bin/python3"  # where Debian puts it, whatever python3 is first on the path
    if sys.executable != system and pathlib.Path(system).exists():
        sys.exit(subprocess.run([system, *sys.argv]).returncode)
    print("skipped: needs python3-jsonschema (tools/install-deps.sh build)")
    sys.exit(77)


SOURCES = {"kernels", "graphs", "copies", "calls", "marks", "baseline", "ncu", "model", "gpus", "requests"}


def goldens(source):
    for path in sorted((source / "tests/golden").glob("*/expected.out")):
        text = path.read_text()
        if text.startswith("{"):
            document = json.loads(text)
            if document.get("schema") == "gpuwhy.metrics":
                yield path.parent.name, document


def recordings(program, corpus, source):
    counters = source / "tests/golden/analyze-ncu-json"
    files = [(counters / "kernels.csv", "--ncu", counters / "counters.csv")]
    if pathlib.Path(corpus).is_dir():
        files += [(path,) for path in sorted([*pathlib.Path(corpus, "nsys_sqlite").glob("*.sqlite"), *pathlib.Path(corpus, "kineto").glob("*.json*")])]
    for file, *words in files:
        result = subprocess.run([program, "analyze", file, *words, "--json"], capture_output=True)
        if result.returncode == 0:
            yield file.name, json.loads(result.stdout)


def numbers(value, pattern=""):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from numbers(inner, f"{pattern}.{key}" if pattern else key)
    elif isinstance(value, list):
        for inner in value:
            yield from numbers(inner, pattern + "[]")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield pattern


def origins(source):
    """The patterns of keys that the table of docs/metrics.md describes as numbers."""
    table = (source / "docs/metrics.md").read_text().partition("<!-- keys begin -->")[2].partition("<!-- keys end -->")[0]
    rules = []
    for line in table.strip().splitlines()[2:]:
        key, unit, _, sources, formula, _ = (cell.strip() for cell in line.strip("|").split("|"))
        unknown = set(filter(None, sources.split(", "))) - SOURCES
        if unknown or bool(unit) != bool(formula) or (sources and not unit):
            sys.exit(f"docs/metrics.md: {line} names another source, or has no unit or no formula")
        if unit:
            rules.append(re.compile(re.escape(key.strip("`")).replace(r"\*", r"[^.]*")))
    return rules


def without_origin(document, rules):
    return sorted(key for key in set(numbers(document)) if not any(rule.fullmatch(key) for rule in rules))


def planted(document):
    """The same file with one thing wrong, many times."""
    def changed(change):
        wrong = copy.deepcopy(document)
        change(wrong)
        return wrong
    yield "a key more", changed(lambda d: d.update(surprise_ns=1))
    yield "a key less", changed(lambda d: d.pop("findings"))
    yield "a text for a time", changed(lambda d: d["capture"].update(kernel_ns="1"))
    yield "a part of a nanosecond", changed(lambda d: d["capture"].update(kernel_ns=1.5))
    yield "a negative time", changed(lambda d: d["capture"].update(kernel_ns=-1))
    yield "an unknown id", changed(lambda d: d["findings"][0].update(id="mystery"))
    yield "more than all of it", changed(lambda d: d["findings"][0].update(saving_fraction=1.01))
    yield "a finding without evidence", changed(lambda d: d["findings"][0].update(evidence=[]))
    yield "another version", changed(lambda d: d.update(schema_version=1))
    yield "keys of version 1", changed(lambda d: d.update(origins=[]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--program")
    parser.add_argument("--corpus")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    schema = json.loads((arguments.source / "docs/schema/metrics.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    documents = list(goldens(arguments.source))
    rules = origins(arguments.source)
    if arguments.self_test:
        with_findings = next(document for _, document in documents if document["findings"])
        missed = [what for what, wrong in planted(with_findings) if validator.is_valid(wrong)]
        missed += [] if without_origin({"capture": {"kernel_ns": 1, "surprise_ns": 1}}, rules) == ["capture.surprise_ns"] else ["a number without a row"]
        sys.exit(f"not refused: {missed}" if missed else 0)
    documents += [(path.name, json.loads(path.read_text())) for path in arguments.files]
    if arguments.program:
        documents += recordings(arguments.program, arguments.corpus, arguments.source)
    failures = []
    for name, document in documents:
        for error in list(validator.iter_errors(document))[:3]:
            failures.append(f"{name}: {'/'.join(map(str, error.absolute_path))}: {error.message[:200]}")
        failures += [f"{name}: docs/metrics.md does not say where {key} comes from" for key in without_origin(document, rules)]
    if failures:
        sys.exit("\n".join(failures[:40]))
    print(f"{len(documents)} files fit the schema; docs/metrics.md describes every number")


if __name__ == "__main__":
    main()
