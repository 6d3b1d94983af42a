#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Commands at the width of a terminal: no sentence and no table is wider, so none breaks inside a word."""
import os
import subprocess
import sys

import testing
from recording import make_recording

WIDTHS = (80, 100)


def main():
    program = testing.arguments("program").program
    faults = []
    with testing.scratch() as folder:
        cases = ("analyze-model", "table-layers", "analyze-nocuda", "analyze-graph")
        model, layers, empty, graph = (str(make_recording(folder / f"{case}.sqlite", case)) for case in cases)
        commands = [["analyze", model, "--model", "deepseek_ocr"], ["analyze", layers], ["analyze", empty], ["analyze", graph],
                    ["report", model, "--verbose"], ["table", "kernels", graph], ["table", "ranges", model], ["table", "layers", layers],
                    ["table", "steps", layers], ["table", "launches", graph], ["table"], ["table", graph], ["doctor"],
                    ["model", "deepseek_ocr", "--gpu-name", "H100-SXM5-80GB"], ["compare", model, layers], ["explain", "launch_bound"],
                    ["ncu", "plan", layers], *(["list", what] for what in ("gpus", "models", "presets", "formats", "commands"))]
        for width in WIDTHS:
            for words in commands:
                told = subprocess.run([program, *words], capture_output=True, text=True, timeout=120, cwd=folder,
                                      env={**os.environ, "COLUMNS": str(width), "TERM": "dumb"})
                # One word, as a path, cannot be broken.
                wide = [line for line in told.stdout.splitlines() if len(line) > width and len(line.split()) > 1]
                wide = [line for line in wide if max(map(len, line.split())) < width // 2]
                # A command is pasted whole.
                wide = [line for line in wide if not line.endswith(" PROGRAM")]
                faults += [f"{words[0]} at {width}: {len(line)} wide: {line}" for line in wide[:3]]
    if faults:
        sys.exit("\n".join(faults))
    print(f"{len(commands)} commands at {' and '.join(map(str, WIDTHS))} columns")
    return 0


if __name__ == "__main__":
    sys.exit(main())
