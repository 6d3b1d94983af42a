#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test of docs/quickstart-llm.md: every line of its bash blocks, in order, in one folder, and every file it mentions. A line is an
argument list, without a shell; BUNDLE is what the last run printed."""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

from runs import Run, guarded, has_report


def main():
    arguments = testing.arguments("program")
    if not arguments.llama_runner:
        testing.skip("llama_runner is not built (tools/install-deps.sh workload)")
    if not shutil.which("nsys"):
        testing.skip("nsys is not installed (tools/install-deps.sh nsight)")
    text = (pathlib.Path(__file__).parents[2] / "docs/quickstart-llm.md").read_text()
    lines = [line for block in re.findall(r"^```bash\n(.*?)^```$", text, re.M | re.S) for line in block.splitlines()]
    files = re.findall(r"^\| `([\w/.-]+\.[\w-]+)` \|", text, re.M)
    assert len(lines) >= 9 and len(files) >= 7, (lines, files)
    directory = pathlib.Path(tempfile.mkdtemp(prefix="gpuwhy-quickstart-"))
    bundles = []
    try:
        (directory / "build").mkdir()
        (directory / "build/release").symlink_to(pathlib.Path(arguments.program).parent)
        for line in lines:
            argv = [str(bundles[0]) if word == "BUNDLE" else word for word in shlex.split(line)]
            result = subprocess.run(argv, cwd=directory, capture_output=True, text=True, timeout=120, env=os.environ)
            assert result.returncode == 0, (line, result.stdout, result.stderr)
            print(f"$ {line}")
            if argv[1] == "run" and "--dry-run" not in argv:
                run = Run(result.returncode, str(directory / result.stdout.strip()), result.stderr)
                bundles.append(run.bundle)
                assert has_report(run), (line, result.stderr)
                assert "Stages, unprofiled" in result.stderr, result.stderr
        assert len(bundles) == 4, bundles
        for name in set(files) - {"nsys/run.nsys-rep"}:
            assert (bundles[0] / name).stat().st_size > 0, name
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return 0


if __name__ == "__main__":
    guarded(main)
