#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test of names of 5,000 characters wherever a recording has names: no page that people read shows more than 200 of one, and
metrics.json has them whole."""
import json
import re
import sqlite3
import subprocess
import sys

import testing
from recording import make_recording

LONG = 5000
SHOWN = 200


def plant(path):
    """Each name ends in a letter of its own, many times, with blanks: a cut at words is none."""
    connection = sqlite3.connect(path)
    for letter, (table, column, where) in zip("abcdefg", (
            ("StringIds", "value", "id IN (SELECT demangledName FROM CUPTI_ACTIVITY_KIND_KERNEL)"),
            ("StringIds", "value", "id IN (SELECT shortName FROM CUPTI_ACTIVITY_KIND_KERNEL)"),
            ("StringIds", "value", "value LIKE 'cudaStreamSynchronize%' OR value LIKE 'cudaMalloc%'"),
            ("NVTX_EVENTS", "text", "text NOT NULL"), ("TARGET_INFO_GPU", "name", "1"))):
        have = connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        if have:
            connection.execute(f"UPDATE {table} SET {column} = {column} || ? WHERE {where}", (f"{letter}{letter} " * (LONG // 3),))
    connection.commit()
    connection.close()


def main():
    program = testing.arguments("program").program
    with testing.scratch(prefix="gpuwhy-names-") as folder:
        for case in ("analyze-model", "analyze-llm", "table-layers"):
            path = make_recording(folder / f"{case}.sqlite", case)
            plant(path)
            out = folder / case
            shown = subprocess.run([program, "analyze", path, "--out", out, "--top", "all"], check=True, capture_output=True, text=True,
                                   env={"COLUMNS": "100000"}).stdout
            pages = {"the terminal": shown} | {page.name: page.read_text() for page in out.glob("*.md") if page.name != "kernels.md"}
            page = (out / "report.html").read_text()
            pages["report.html"] = re.sub(r"<[^>]*>", "", re.sub(r"<script.*?</script>", "", page, flags=re.S))
            for name, text in pages.items():
                runs = re.findall(r"(?:([a-g])\1 ){20,}", text) and [found[0] for found in re.finditer(r"(?:([a-g])\1 )+", text)]
                longest = max(map(len, runs), default=0)
                assert longest <= SHOWN, f"{case}: {name} shows {longest} characters of a name"
            assert len((out / "stakeholder_summary.md").read_text()) < 20_000
            assert "dd " * (LONG // 3) in json.dumps(json.loads((out / "metrics.json").read_text())), "metrics.json lacks whole names"
    print("names are cut")
    return 0


if __name__ == "__main__":
    sys.exit(main())
