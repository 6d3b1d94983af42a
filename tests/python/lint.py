#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test of the package's types and style: mypy --strict and ruff, and that both would complain."""
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

from prefix import tools_python

# A user's program, checked against the package's annotations.
USE = """import gpuwhy
p = gpuwhy.open("run.sqlite", model="llama_3_1_8b")
times: list[int] = [kernel.total_ns for kernel in p.kernels]
first: gpuwhy.Finding = p.findings[0]
rows: list[gpuwhy.Launch] = p.launches[:10]
with gpuwhy.mark("prefill", tokens=512):
    pass
"""
WRONG = USE + 'name: int = p.kernels[0].short_name\np.kernls\ngpuwhy.open("run.sqlite", modle="x")\n'


def run(python, *command, cwd):
    return subprocess.run([python, "-m", *command], cwd=cwd, capture_output=True, text=True, timeout=280)


def main():
    arguments = testing.arguments("source")
    python = tools_python()
    source = arguments.source
    with testing.scratch() as directory:
        (directory / "use.py").write_text(USE)
        (directory / "wrong.py").write_text(WRONG)
        settings = ["--config-file", source / "pyproject.toml", "--cache-dir", directory / "cache"]
        checked = run(python, "mypy", *settings, source / "python/gpuwhy", directory / "use.py", cwd=source / "python")
        if checked.returncode:
            sys.exit(checked.stdout + checked.stderr)
        wrong = run(python, "mypy", *settings, directory / "wrong.py", cwd=source / "python")
        assert wrong.returncode == 1 and wrong.stdout.count("error:") == 3, wrong.stdout
        style = ["ruff", "check", "--no-cache", "--output-format", "concise", "--config", source / "pyproject.toml"]
        checked = run(python, *style, source / "python", cwd=source)
        if checked.returncode:
            sys.exit(checked.stdout + checked.stderr)
        (directory / "wrong.py").write_text("import os\n")
        assert run(python, *style, directory / "wrong.py", cwd=source).returncode == 1
    print("mypy --strict and ruff find nothing")


if __name__ == "__main__":
    main()
