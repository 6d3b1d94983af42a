# SPDX-License-Identifier: Apache-2.0
"""The Python that tools/install-deps.sh python makes: data frames, linters, notebooks, packers."""
import os
import pathlib
import sys

NOT_HERE = 77


def tools_python():
    """Its interpreter. Ends the test as skipped where there is none."""
    prefix = pathlib.Path(os.environ.get("GPUWHY_PYTHON_PREFIX") or pathlib.Path.home() / ".cache/gpuwhy/python")
    if not (prefix / "installed").is_file():
        print(f"Skipped: {prefix} is not there; tools/install-deps.sh python makes it")
        sys.exit(NOT_HERE)
    return prefix / "bin/python"
