#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every key of metrics.json must stand in docs/metrics.md, as `key`.

Keys are taken from all golden outputs with the schema llmprof.metrics, which other tests hold against the program.

  check_metrics.py --source DIR
  check_metrics.py --source DIR --self-test     a key that is not explained must be found
"""
import argparse
import json
import pathlib
import re
import sys


def keys_of(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from keys_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys_of(inner)


def documents(source):
    for path in sorted((source / "tests/golden").glob("*/expected.out")):
        text = path.read_text()
        if text.startswith("{"):
            document = json.loads(text)
            if document.get("schema") == "llmprof.metrics":
                yield document


def unexplained(keys, page):
    spans = re.findall(r"`([^`]+)`", page)
    headings = re.findall(r"^## (.+)$", page, re.MULTILINE)
    words = set(spans) | {word.strip() for line in headings for word in line.split(",")}
    return sorted(key for key in keys if key not in words)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    page = (arguments.source / "docs/metrics.md").read_text()
    found = list(documents(arguments.source))
    if not any(document.get("efficiency") for document in found):
        sys.exit("no golden output has metrics with an efficiency: nothing is proved")
    keys = set().union(*(keys_of(document) for document in found))
    if arguments.self_test:
        planted = unexplained(keys | {"planted_key_ns"}, page)
        sys.exit(0 if planted == ["planted_key_ns"] else f"planted one key, found {planted}")
    missing = unexplained(keys, page)
    if missing:
        sys.exit("docs/metrics.md does not explain: " + ", ".join(missing))
    print(f"{len(keys)} keys of metrics.json are explained")


if __name__ == "__main__":
    main()
