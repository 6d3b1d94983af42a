#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Answers on every recording of the corpus against a key that was written by hand.

The first finding must be the one that an engineer names, with its words and within its bound; what would mislead must not
appear. Prints the answers that are not right, and how many are.
"""
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing


def analyze(program, file):
    result = subprocess.run([program, "analyze", str(file), "--json"], capture_output=True, text=True)
    if result.returncode not in (0, 4):
        sys.exit(f"analyze {file}: exit {result.returncode}: {result.stderr}")
    return json.loads(result.stdout)


def objections(metrics, answer):
    findings = metrics["findings"]
    ids = [finding["id"] for finding in findings]
    first = findings[0] if findings else {"id": "", "sentence": "", "saving_ns": 0}
    wanted = answer.get("any_first") or ([answer["first"]] if "first" in answer else None)
    if wanted and first["id"] not in wanted:
        yield f"first is {first['id'] or 'nothing'}, not {' or '.join(wanted)}"
    for word in answer.get("words", []):
        if word not in first["sentence"]:
            yield f"its sentence lacks '{word}': {first['sentence']}"
    for word in answer.get("verdict", []):
        if word not in metrics["verdict"]:
            yield f"the verdict lacks '{word}': {metrics['verdict']}"
    for finding, words in answer.get("words_of", {}).items():
        sentence = " ".join(one["sentence"] for one in findings if one["id"] == finding)
        for word in words if sentence else []:
            if word not in sentence:
                yield f"{finding} lacks '{word}': {sentence}"
    for finding in answer.get("has", []):
        if finding not in ids:
            yield f"{finding} is missing"
    for finding in answer.get("never", []):
        if finding in ids:
            yield f"{finding} must not be said"
    for word in answer.get("not_said", []):
        for finding in findings:
            if word in finding["next"]:
                yield f"{finding['id']} advises '{word}'"
    if "at_most_ms" in answer and first["saving_ns"] > answer["at_most_ms"] * 1e6:
        yield f"saves {first['saving_ns'] / 1e6:.1f} ms, at most {answer['at_most_ms']} ms holds"


def asked():
    """The command line of a test of the key. Leaves where there is no corpus."""
    arguments = testing.arguments("program", "corpus", least=64)  # least: right answers to pass
    if not arguments.corpus.is_dir():
        testing.skip(f"no corpus at {arguments.corpus}")
    return arguments


def wanted():
    """The key: what must be said of each recording."""
    key = json.loads(pathlib.Path(__file__).with_name("key.json").read_text())
    none = {name: {"case": "no GPU activity was recorded", "first": "no_gpu_activity"} for name in key["no_gpu"]}
    return {**key["recordings"], **none}


def main():
    arguments = asked()
    answers = wanted()
    num_right = 0
    for name, answer in sorted(answers.items()):
        file = arguments.corpus / ("nsys_sqlite" if name.endswith(".sqlite") else "kineto") / name
        found = list(objections(analyze(arguments.program, file), answer))
        num_right += not found
        for objection in found:
            print(f"{name} ({answer['case']}): {objection}")
    print(f"{num_right} of {len(answers)} recordings are answered as the key says")
    return 0 if num_right >= arguments.least else 1


if __name__ == "__main__":
    sys.exit(main())
