#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""real/fleet_history.py with two million rows of kernels: 8 runs of 250 ranks with 500 kernels in two stages."""
import pathlib
import subprocess
import sys

REAL = pathlib.Path(__file__).resolve().parent.parent / "real" / "fleet_history.py"
sys.exit(subprocess.run([sys.executable, REAL, *sys.argv[1:], "--large"]).returncode)
