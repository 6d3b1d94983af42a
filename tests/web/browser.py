# SPDX-License-Identifier: Apache-2.0
"""Shared parts of the tests of the page: a browser if there is one, and pages to open in it."""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from recording import make_recording  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent


def arguments():
    parser = argparse.ArgumentParser()
    for name in ("program", "make-trace", "corpus", "out"):
        parser.add_argument(f"--{name}", required=True)
    return parser.parse_known_args()[0]


def needed():
    """The browser and the folder of Node's modules; leaves with 77 where one is missing."""
    modules = pathlib.Path(os.environ.get("GPUWHY_WEB_PREFIX", pathlib.Path.home() / ".cache/gpuwhy/web"))
    chromium = shutil.which("chromium")
    if not chromium or not shutil.which("node") or not (modules / "installed").exists():
        print("skipped: needs chromium, node and what tools/install-deps.sh web puts beside them")
        sys.exit(77)
    return chromium, modules


def page(program, recording, folder, name, ready_ms=1000, extra=(), **more):
    """Analyses a recording into a folder; returns the input of check_page.cjs."""
    out = folder / name
    subprocess.run([program, "analyze", recording, "--out", out, *extra], check=True, stdout=subprocess.DEVNULL)
    report = subprocess.run([program, "report", out, "--format", "json", "--section",
                             "aggregates,stages,ledger,efficiency,environment"], check=True, capture_output=True)
    (out / "report.json").write_bytes(report.stdout)
    return {"name": name, "path": str(out / "report.html"), "metrics": str(out / "metrics.json"),
            "report": str(out / "report.json"), "readyMs": ready_ms, **{"leastNumbers": 20, **more}}


def golden(case, folder):
    """The recording of a golden case, made of its SQL."""
    return make_recording(folder / f"{case}.sqlite", case)


def check(pages, folder, out):
    chromium, modules = needed()
    spec = folder / "spec.json"
    # A machine that does other things too may be given more time.
    factor = float(os.environ.get("GPUWHY_WEB_TIME_FACTOR", "1"))
    spec.write_text(json.dumps({"pages": pages, "out": str(pathlib.Path(out).resolve()), "chromium": chromium, "modules": str(modules),
                                "factor": factor}))
    result = subprocess.run(["node", HERE / "check_page.cjs", spec], capture_output=True, text=True, timeout=560)
    print(result.stdout, end="")
    if result.returncode != 0:
        sys.exit(result.stderr[-6000:])
    return [json.loads(line) for line in result.stdout.splitlines()]
