#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checker of reasons: the program gives every reason of src/capture/reason.cc, and docs/capture-contract.md lists it."""
import pathlib
import re
import sys
import tempfile

from violations import main

TABLE, DOCUMENT = "src/capture/reason.cc", "docs/capture-contract.md"


def violations(source):
    rows = re.findall(r'\{Reason::(k\w+),\s*"(\w+)"', (source / TABLE).read_text())
    used = {name for path in (source / "src").rglob("*.cc") if path != source / TABLE
            for name in re.findall(r"Reason::(k\w+)", path.read_text())}
    listed = set(re.findall(r"^ *(\w+) +\d+ ", (source / DOCUMENT).read_text(), re.M))
    found = [] if rows else [f"{TABLE} has no rows"]
    found += [f"{code}: nothing in src/ gives this reason" for name, code in rows if name not in used]
    return found + [f"{code}: {DOCUMENT} does not list it" for _, code in rows if code not in listed]


def self_test(source):
    with tempfile.TemporaryDirectory() as directory:
        copy = pathlib.Path(directory)
        for name, text in ((TABLE, '{Reason::kOne, "one", 4, ""}, {Reason::kTwo,\n "two", 4, ""}'), ("src/a.cc", "Reason::kOne"),
                           (DOCUMENT, "two  4  meaning")):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_text(text)
        assert [line.split(":")[0] for line in violations(copy)] == ["two", "one"], violations(copy)
    return 0


if __name__ == "__main__":
    sys.exit(main(violations, self_test))
