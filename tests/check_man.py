#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checker and generator (--update) of docs/gpuwhy.1 from the program's own help: every command, option and exit code."""
import re
import subprocess
import sys

import testing

HEAD = r""".TH GPUWHY 1 "" "gpuwhy" "User Commands"
.SH NAME
gpuwhy \- deep profiling of LLM workloads on NVIDIA GPUs
.SH SYNOPSIS
.B gpuwhy
.I COMMAND
.RI [ OPTION ...]
.SH DESCRIPTION
Runs an LLM program bare, under Nsight Systems and under Nsight Compute, checks that the capture really happened, and says where
each nanosecond of the GPU went, how far that is from the speed of light of the model on that GPU, and what to fix first.
.SH COMMANDS
"""
TAIL = r""".SH FILES
.TP
.I gpuwhy-runs/
Bundles of runs, one folder each; artifacts.dir names another place.
.TP
.I .gpuwhy/baselines/
Baselines of gpuwhy gate.
.SH SEE ALSO
.BR nsys (1),
.BR ncu (1)
"""


def ask(program, *words):
    return subprocess.run([program, *words], check=True, capture_output=True, text=True,
                          env={"PATH": "/usr/bin:/bin", "COLUMNS": "100"}).stdout


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def section(path, text):
    """Options that commands share are rows of the topic that explains them: here they are only named."""
    lines = text.splitlines()
    out = [f".SS gpuwhy {roff(path)}", roff(lines[0])]
    mode, examples = "", []
    for line in lines[1:]:
        if line in ("Positionals:", "Options:"):
            mode = "rows"
        elif line == "Subcommands:":
            mode = ""  # each is a section
        elif line == "Shared options, explained by:":
            mode = "shared"
        elif line == "Examples:":
            mode = "examples"
        elif mode == "shared" and line.strip():
            out += [".PP", roff(re.sub(r"\s{2,}", ": ", line.strip()))] if line[2] != " " else [roff(line.strip())]
        elif mode == "rows" and line.strip().startswith("-h,--help"):
            pass  # every command has it
        elif mode == "rows" and line.startswith("  "):
            match = re.match(r"  (\S.*?)(?:\s{2,}(.*))?$", line) if not line.startswith("   ") else None
            if match:
                out += [".TP", f".B {roff(match[1])}", roff(match[2] or "")]
            else:
                out.append(roff(line.strip()))
        elif mode == "examples" and line.strip():
            examples.append(roff(line.strip()))
    if examples:
        out += [".PP", "Examples:", ".RS", ".nf", *examples, ".fi", ".RE"]
    return [line for line in out if line]


def manual(program):
    commands = [re.split(r"\s{2,}", line.strip())[0] for line in ask(program, "list", "commands").splitlines()[1:]]
    lines = []
    for command in commands:
        lines += section(command, ask(program, *command.split(), "--help"))
    lines.append(".SH SHARED OPTIONS")
    for topic in ("recording", "model", "output"):
        lines += section(f"explain {topic}", ask(program, "explain", topic).replace("\n\n", "\nOptions:\n", 1))
    lines += section("fleet", ask(program, "fleet", "--help"))
    lines.append(".SH EXIT STATUS")
    for row in ask(program, "list", "exit-codes").splitlines()[1:]:
        code, meaning = re.split(r"\s{2,}", row.strip(), maxsplit=1)
        lines += [".TP", f".B {code}", roff(meaning)]
    return HEAD + "\n".join(lines) + "\n" + TAIL


def main():
    asked = testing.arguments("program", "source", update=False)
    path = asked.source / "docs/gpuwhy.1"
    made = manual(asked.program)
    assert made.count(".TP") > 100 and "\\-\\-repeat" in made, "the page lacks options"
    if asked.update:
        path.write_text(made)
    elif path.read_text() != made:
        sys.exit("docs/gpuwhy.1 is not what the program says: tests/check_man.py --update writes it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
