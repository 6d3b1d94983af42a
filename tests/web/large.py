#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of half a million slices: below 2 MB, interactive in a second, and honest about what it leaves out."""
import pathlib
import subprocess
import sys
import tempfile

import browser


def main():
    asked = browser.arguments()
    browser.needed()
    with tempfile.TemporaryDirectory() as directory:
        folder = pathlib.Path(directory)
        for kernels in (50_000, 500_000):
            subprocess.run([asked.make_trace, folder / f"{kernels}.sqlite", str(kernels)], check=True,
                           stdout=subprocess.DEVNULL)
        pages = [browser.page(asked.program, folder / "50000.sqlite", folder, "slices-50k", ready_ms=1000),
                 browser.page(asked.program, folder / "500000.sqlite", folder, "slices-500k", ready_ms=1000)]
        browser.check(pages, folder, asked.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
