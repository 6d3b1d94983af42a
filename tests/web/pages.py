#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pages of small recordings that every checkout has, one of them with names made to break out."""
import pathlib
import sqlite3
import sys
import tempfile

import browser

HOSTILE = ["</script><img src=x onerror=globalThis.owned=1>", "<!--<script>globalThis.owned=1//", "]]>\"'`&lt;{{script}}",
           "nul\x00and\x07bell", "bidi\u202etxt.exe\u2066", "k" * 10_000, "<svg/onload=globalThis.owned=1>"]


def hostile_copy(recording, folder):
    """The recording again, with names that try to get out of wherever they are shown."""
    path = folder / "hostile.sqlite"
    path.write_bytes(recording.read_bytes())
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT id FROM StringIds WHERE id IN (SELECT demangledName FROM "
                              "CUPTI_ACTIVITY_KIND_KERNEL)").fetchall()
    kernels = connection.execute("SELECT rowid FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchall()
    columns = [row[1] for row in connection.execute("PRAGMA table_info(CUPTI_ACTIVITY_KIND_KERNEL)")]
    assert rows and len(kernels) >= len(HOSTILE), "the recording has too few kernels for the names"
    for i, name in enumerate(HOSTILE):
        connection.execute("INSERT INTO StringIds (id, value) VALUES (?, ?)", (900_000 + i, name))
        for column in {"demangledName", "shortName"} & set(columns):
            connection.execute(f"UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET {column} = ? WHERE rowid % ? = ?",
                               (900_000 + i, 2 * len(HOSTILE), i))
    connection.execute("UPDATE NVTX_EVENTS SET text = ? WHERE text = 'prefill'", (HOSTILE[0],))
    connection.execute("UPDATE TARGET_INFO_GPU SET name = ?", (HOSTILE[6],))
    connection.commit()
    connection.close()
    return path


def with_flops(counters):
    """The same launches with what a roofline needs: operations and bytes."""
    added = {"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum": 1000,
             "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum": 2000,
             "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": 4000, "dram__bytes.sum": 50000}
    rows = []
    for line in counters.splitlines():
        rows.append(line)
        if "gpu__time_duration.sum" in line:
            head = line[:line.index('"gpu__time_duration.sum"')]
            rows += [f'{head}"{name}","{"byte" if "bytes" in name else "inst"}","{value}",' for name, value in added.items()]
    return "\n".join(rows) + "\n"


def main():
    asked = browser.arguments()
    browser.needed()
    with tempfile.TemporaryDirectory() as directory:
        folder = pathlib.Path(directory)
        model = browser.golden("analyze-model", folder)
        hostile = hostile_copy(model, folder)
        requests = str(browser.HERE.parent / "golden/analyze-requests/requests.jsonl")
        pages = [browser.page(asked.program, model, folder, "decode", extra=["--model", "deepseek_ocr"], bare=True),
                 browser.page(asked.program, hostile, folder, "hostile", hostile=True),
                 browser.page(asked.program, browser.golden("analyze-graph", folder), folder, "graph", leastNumbers=5),
                 browser.page(asked.program, browser.golden("analyze-requests", folder), folder, "requests", leastNumbers=5,
                              extra=["--requests", requests]),
                 browser.page(asked.program, browser.golden("table-layers", folder), folder, "layers", leastNumbers=5, model=True),
                 browser.page(asked.program, browser.golden("analyze-nocuda", folder), folder, "nocuda", leastNumbers=0)]
        counted = browser.golden("analyze-sqlite-ncu", folder)
        counters = folder / "counters.csv"
        counters.write_text(with_flops((browser.HERE.parent / "golden/analyze-sqlite-ncu/counters.csv").read_text()))
        pages.append(browser.page(asked.program, counted, folder, "counters", extra=["--ncu", str(counters)],
                                  roofline=True, leastNumbers=5))
        browser.check(pages, folder, asked.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
