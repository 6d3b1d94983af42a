#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`gpuwhy run --plan OTHER`: ncu is planned from another recording, whose numbers are not those of this run. A script stands for ncu."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import testing
from recording import make_recording

NCU = """#!/bin/sh
case "$1" in
  --version) echo "Version 2024.1.0.0 (build 1)";;
  --help|--list-*|--query-*) ;;
  *) echo "==WARNING== No kernels were profiled.";;
esac
"""


def main():
    arguments = testing.arguments("program", "workload")
    with tempfile.TemporaryDirectory() as directory:
        folder = pathlib.Path(directory)
        other = make_recording(folder / "other.sqlite", "analyze-llm")
        ncu = folder / "ncu"
        ncu.write_text(NCU)
        ncu.chmod(0o755)
        result = subprocess.run([arguments.program, "run", "--progress", "plain", "--passes", "baseline,ncu", "--plan", str(other),
                                 f"artifacts.dir={folder / 'runs'}", "--", arguments.workload],
                                capture_output=True, text=True, timeout=120,
                                env={"PATH": os.environ["PATH"], "HOME": directory, "TMPDIR": directory, "GPUWHY_NCU": str(ncu)})
        assert result.returncode == 7, result
        bundle = next((folder / "runs").iterdir())
        plan = json.loads((bundle / "ncu/plan.json").read_text())
        metrics = json.loads((bundle / "metrics.json").read_text())
        assert plan["kernels"], plan
        assert not metrics["kernels"] and not metrics["devices"], "the report has the kernels of another program"
        assert [row["stage"] for row in metrics["baseline"]], metrics["baseline"]
        for name in ("report.md", "kernels.md", "stakeholder_summary.md"):
            for kernel in plan["kernels"]:
                assert kernel["kernel_name"] not in (bundle / name).read_text(), (name, kernel["kernel_name"])

        line = next(line for line in result.stderr.splitlines() if "without ranges" in line)
        assert "::" not in line and f"gpuwhy run --passes baseline,ncu --plan {other} " in line, line
    return 0


if __name__ == "__main__":
    sys.exit(main())
