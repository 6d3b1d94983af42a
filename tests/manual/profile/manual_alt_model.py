#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same run on another model target: the same bundle with the other model's name and size, and no code changed.
See README.md beside it."""
import json
import subprocess

from manual_profile import as_test, options


def check(bundle, target):
    listed = json.loads(subprocess.run([options("").program, "list", "models", "--json"], capture_output=True,
                                       check=True).stdout)["rows"]
    row = next(row for row in listed if row["model"] == target)
    model = bundle.manifest["run"]["model"]
    assert model["name"] == row["name"] and model["params"] == row["params"], (model, row)
    assert bundle.json("metrics.json")["efficiency"]["model"] == row["name"]
    others = [other["name"] for other in listed if other["model"] == "llama_100m"]
    assert target == "llama_100m" or others[0] not in (bundle.path / "inputs.yaml").read_text(), "another model's name"


if __name__ == "__main__":
    as_test("mla_tiny", check)
