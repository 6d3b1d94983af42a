#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SKILL.md: what the program prints is the file, its commands work, and its table of exit codes is complete.

Commands that record are run with --dry-run and stand-ins for the engines. tests/check_docs.py checks the options of all others.
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))
import testing
from recording import make_recording

WORDS = {"FILE": "run.sqlite", "BEFORE": "run.sqlite", "AFTER": "layers.sqlite", "KEY": "capture.kernel_ns", "WORD": "launch_bound"}
LONGEST_DESCRIPTION = 1024  # that agents take


def main():
    arguments = testing.arguments("program", "source")
    program = str(pathlib.Path(arguments.program).resolve())
    text = (arguments.source / "docs" / "agents" / "SKILL.md").read_text()
    printed = subprocess.run([program, "mcp", "--skill"], check=True, capture_output=True, text=True).stdout
    assert printed == text, "gpuwhy mcp --skill prints another text than docs/agents/SKILL.md"
    head = re.match(r"---\nname: ([a-z-]+)\ndescription: ([^\n]+)\n---\n", text)
    assert head and len(head[2]) <= LONGEST_DESCRIPTION, "the head of SKILL.md"

    codes = subprocess.run([program, "list", "exit-codes"], check=True, capture_output=True, text=True).stdout.splitlines()[1:]
    table = re.findall(r"^\| (\d+) \| ([^|]+) \|", text, re.M)
    assert [line.split()[0] for line in codes] == [code for code, _ in table], table

    num_run = 0
    with tempfile.TemporaryDirectory(prefix="gpuwhy-skill-") as folder:
        make_recording(pathlib.Path(folder) / "run.sqlite", "analyze-llm")
        make_recording(pathlib.Path(folder) / "layers.sqlite", "table-layers")
        stand_ins = pathlib.Path(folder) / "bin"
        stand_ins.mkdir()
        for name in ("vllm", "python", "trtllm-serve", "llama-server", "gpuwhy"):
            (stand_ins / name).write_text("#!/bin/sh\nexit 0\n")
            (stand_ins / name).chmod(0o755)
        (pathlib.Path(folder) / "program").symlink_to("/bin/true")
        environment = dict(os.environ, PATH=f"{stand_ins}:{os.environ['PATH']}")
        blocks = re.findall(r"^```text\n(.*?)^```$", text, re.M | re.S)
        recipes = [line for block in blocks for line in block.splitlines() if line.startswith("gpuwhy run ")]
        assert len(recipes) >= 6, recipes
        for line in recipes:
            words = shlex.split(line)[1:]
            result = subprocess.run([program, "run", "--dry-run", *words[1:]], cwd=folder, env=environment, capture_output=True, text=True)
            assert result.returncode in (0, 5), (line, result.returncode, result.stderr)  # 5: nsys is not here
            num_run += 1
        # What it says of doctor: 5 exactly where a check fails, in a place without any tool.
        assert "`gpuwhy doctor --strict`" in text and re.search(r"`gpuwhy doctor`(?! with)", text) is None, "doctor without --strict exits with 0"
        result = subprocess.run([program, "doctor", "--strict"], cwd=folder, env=dict(environment, PATH=str(stand_ins)), capture_output=True, text=True)
        assert "FAIL" in result.stdout and result.returncode == 5, result
        inline = re.findall(r"`(gpuwhy (?:analyze|table|explain|compare|export|list|mcp --skill)[^`\n]*)`", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))
        for line in inline:
            words = [WORDS.get(word, word) for word in shlex.split(line)[1:]]
            result = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True)
            assert result.returncode == 0, (line, result.returncode, result.stderr)
            num_run += 1
    print(f"{num_run} commands work")
    return 0


if __name__ == "__main__":
    sys.exit(main())
