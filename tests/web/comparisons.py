#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pages of comparisons: several runs per side, hostile names, operators without a GPU, sides that are not comparable."""
import json
import pathlib
import subprocess
import sys
import tempfile

import browser
import pages


def metrics_of(program, recording, folder):
    subprocess.run([program, "analyze", recording, "--out", folder], check=True, stdout=subprocess.DEVNULL)
    return json.loads((folder / "metrics.json").read_text())


def side(folder, name, metrics, factor):
    """Six runs with a little noise, whose decode and kernels are slower by `factor`."""
    files = []
    for i in range(6):
        run = json.loads(json.dumps(metrics))
        noise = 1 + i / 1000
        for which in ("ttft", "tpot"):
            time = run["aggregates"][which]["p50_ns"]
            run["aggregates"][which]["p50_ns"] = time and int(time * noise * (factor if which == "tpot" else 1))
        for kernel in run["kernels"]:
            more = int(kernel["total_ns"] * (factor * noise - 1))
            kernel["total_ns"] += more
            run["capture"]["kernel_ns"] += more
        path = folder / f"{name}-{i}.json"
        path.write_text(json.dumps(run))
        files.append(path)
    return files


def page(program, folder, name, base, candidate, extra=(), **more):
    path, numbers = folder / f"{name}.html", folder / f"{name}.json"
    sides = [*map(str, base), "--to", *map(str, candidate), *extra]
    for target, format_ in ((path, "html"), (numbers, "json")):
        result = subprocess.run([program, "compare", *sides, "--format", format_], capture_output=True)
        assert result.returncode in (0, 3, 4), result.stderr
        target.write_bytes(result.stdout)
    return {"name": f"compare-{name}", "path": str(path), "metrics": str(numbers), "static": True, "leastNumbers": 20, **more}


def main():
    asked = browser.arguments()
    browser.needed()
    with tempfile.TemporaryDirectory() as directory:
        folder = pathlib.Path(directory)
        model = browser.golden("analyze-model", folder)
        hostile = pages.hostile_copy(model, folder)
        metrics = metrics_of(asked.program, model, folder / "model")
        evil = metrics_of(asked.program, hostile, folder / "evil")
        operators = browser.HERE.parent / "golden/compare-operators"
        base = side(folder, "base", metrics, 1)
        told = [page(asked.program, folder, "slower", base, side(folder, "slower", metrics, 1.2)),
                page(asked.program, folder, "even", base, base),
                page(asked.program, folder, "hostile", side(folder, "evil", evil, 1), side(folder, "evil2", evil, 1.2), hostile=True),
                page(asked.program, folder, "invalid", [model], [hostile], hostile=True),
                page(asked.program, folder, "operators", [operators / "f16.json"], [operators / "q8.json"], ["--allow", "model"])]
        corpus = pathlib.Path(asked.corpus) / "nsys_sqlite"
        if corpus.is_dir():
            before, after = (corpus / f"v2026.2.1_nsysai_mfu_h100x2_nccl_{side_}.sqlite" for side_ in ("before", "after"))
            told.append(page(asked.program, folder, "two-gpus", [before], [after], ["--allow", "launches"]))
        browser.check(told, folder, asked.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
