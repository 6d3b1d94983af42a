#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checker of the documents: runs their examples, and searches the whole source for odd turns of phrase.

In README.md and docs/*.md a block fenced as ```console is a session: a line `$ gpuwhy ...` is run, in order, in one
empty directory a document, and what follows it must be what is printed (both streams). A line `...` stands for any
lines. An exit code other than 0 is noted on the command as `# exit 2`.

A comment `<!-- recording NAME.sqlite of CASE -->` makes the recording of a golden case (CASE/FILE: of its FILE.sql) there first; `<!-- screen 100x40 -->` says
that every session of the document, with what it prints, fits a terminal of that size.

A command that is only mentioned, `gpuwhy compare --json` in a sentence or in a block of another kind, may name only commands and
options that there are.

A block fenced as ```sh is what a person types once on a machine; each of its lines must stand in .ci/run, which
really does it. docs/cli.md must show `gpuwhy COMMAND --help` for every command that `gpuwhy list commands` names; those that only
other commands type (PLUMBING) are not listed.

TURNS lists phrases that docs/style.md refuses, each with a plain replacement. Documents, strings and comments of the project must
have none. A phrase is also found across a line break, with the comment marks or quotes of that line between its words. What a
document quotes from the program (sessions, the table of keys) is left out, because its source is searched.

  check_docs.py --source . --program build/release/gpuwhy [--update]
  check_docs.py --source . --words      the odd turns alone, which needs no program
"""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import testing
from recording import make_recording

FENCE = re.compile(r"^```(console|sh)\n(.*?)^```$", re.M | re.S)
RECORDING = re.compile(r"^<!-- recording (\S+) of (\S+) -->$", re.M)
SCREEN = re.compile(r"^<!-- screen (\d+)x(\d+) -->$", re.M)
EXIT = re.compile(r"\s+# exit (\d+)$")
# Up to the end of the code span, the program that is run, or the next shell operator.
MENTION = re.compile(r"(?:^|[`\s({]|release/)gpuwhy ([a-z]+(?![a-z,.])[^`\n|;>]*)", re.M)
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
README_LINES = 120
PLUMBING = {"drive", "rank"}

# What an odd "a" counts by: "a row a GPU" is one row per GPU.
COUNTED = r"(?:GPU|rank|node|kernel|launch|stage|step|stream|process|thread|side|call|event|row|table|token|layer|slice|octave|metric)"
JOINING = r"(?:of|in|on|to|as|at|so|from|with|for|by|and|or|is|if|that|than|has|between|without|what|make|makes|take|takes|launches|runs)"
TURNS = [(re.compile(pattern.replace(" ", r"[\s/#\"*]+"), re.I), plain) for pattern, plain in [
    (r"(?<!there\s)\b(?:is|are|was|were) no (?!(?:more|less|worse|(?:long|short|slow|fast|larg|small|high|low|bett|lat|earli|old|wid|deep|furth)e?r)\b)[a-z]\w*", "is not a"),
    (r"\btold (?:by|from|apart|of|as)\b", "identified by, distinguished from, reported as"),
    (r"\b(?:hold|holds|holding|held) (?:\S*[^\s.] ){0,6}?against\b", "compare with, check against"),
    (r"\bmend(?:s|ed|ing)?\b", "fix"),
    (r"\b(?:young|younger|youngest)\b", "recent, latest"),
    (r"\bstrangers?\b", "untrusted"),
    (r"\bat (?:the|its|their) (?:least|most)\b", "minimum, at least"),
    (r"\bwhoever\b", "name the actor: the process that, the first client that"),
    (r"\b(?:an?|one|two|few|\d[\d,.]*) (?:(?!" + JOINING + r"\b)\w+ )?an? " + COUNTED + r"\b(?! (?:of|that|which|is|in|on|with))", "per"),
    (r"\b(?:rows|bytes|tokens|seconds|batches|slices|events) an? " + COUNTED + r"\b(?! (?:has|had|can|may|needs|takes))", "per"),
    (r"\bso many\b", "the number of"),
    (r"\banew\b", "again"),
    (r"\bagain and again\b", "repeatedly"),
    (r"\bpassed over\b", "skipped, ignored"),
    (r"\btaken for\b", "mistaken for, treated as"),
    (r"\btaken apart\b", "broken down"),
    (r"\bnobody(?:'s)? (?:knows?|time|to name|could guess)\b|\bis nobody's\b", "unknown, excluded"),
    (r"\bnothing of (?:the|it|them|a)\b", "no ..., nothing about"),
    (r"\bsays? (?:nothing|something|little|more) of\b", "about"),
    (r"\bbeyond doubt\b", "significantly"),
    (r"\bstands? (?:in|behind)\b", "is in, follows"),
    (r"\bbehind (?:--|the (?:command|program|events|table|file|last|first)\b)", "after"),
    (r"\bcan be had\b", "is available"),
    (r"\btimes of day\b", "timestamps"),
    (r"(?<![\d.,x-])(?<!−\s)1\x20(?:times|steps|runs|ranks|rows|gaps|calls|passes|kernels|launches|GPUs|instances|files|processes)\b", "singular after 1"),
]]
QUOTED = re.compile(r"^```console\n.*?^```$|^<!-- keys begin -->$.*?^<!-- keys end -->$", re.M | re.S)
SPOKEN = (".md", ".cc", ".h", ".py", ".sh", ".js", ".cjs", ".css", ".yaml", ".cmake", "CMakeLists.txt", ".1", "run", "expected.out", "expected.err")
UNSPOKEN = ["build", ".git", "tests/check_docs.py", "docs/style.md"]
# Folders and files to be added to the search.
NOT_CHECKED_YET = []


def run(program, command, directory):
    expected_code = 0
    if match := EXIT.search(command):
        expected_code = int(match.group(1))
        command = command[:match.start()]
    words = shlex.split(command)
    if words[0] != "gpuwhy":
        return None, f"only gpuwhy may be run, not {words[0]}"
    environment = {"PATH": os.environ.get("PATH", ""), "HOME": directory, "LANG": "C.UTF-8", "TERM": "dumb"}
    environment.update((k, v) for k, v in os.environ.items() if k.endswith("SAN_OPTIONS"))
    result = subprocess.run([str(program)] + words[1:], cwd=directory, env=environment,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    problem = None if result.returncode == expected_code else f"exit {result.returncode} instead of {expected_code}"
    return result.stdout.decode(errors="replace").splitlines(), problem


def matches(expected, actual):
    """Lines equal, where `...` stands for any number of lines."""
    if not expected:
        return not actual
    if expected[0] == "...":
        return any(matches(expected[1:], actual[i:]) for i in range(len(actual) + 1))
    return bool(actual) and expected[0] == actual[0] and matches(expected[1:], actual[1:])


def sessions(block):
    """Pairs of command and the lines that follow it."""
    pairs = []
    for line in block.splitlines():
        if line.startswith("$ "):
            pairs.append((line[2:], []))
        elif pairs:
            pairs[-1][1].append(line)
    return pairs


class Document:
    def __init__(self, path, program, ci_script):
        self.path, self.program, self.ci_script = path, program, ci_script
        self.problems = []
        self.commands = []

    def check(self, block, directory):
        """The block as it should be."""
        lines = []
        for command, expected in sessions(block):
            self.commands.append(command)
            actual, problem = run(self.program, command, directory)
            if problem:
                self.problems.append(f"$ {command}\n  {problem}: {actual}")
            lines.append("$ " + command)
            if actual is None or matches(expected, actual):
                lines += expected
            else:
                self.problems.append(f"$ {command}\n  prints\n    " + "\n    ".join(actual))
                lines += actual
        return "".join(line + "\n" for line in lines)

    def check_screen(self, block, columns, rows):
        """Lines too long for the terminal go on in the next one."""
        used = sum(max(1, -(-len(line) // columns)) for line in block.splitlines())
        if used > rows:
            self.problems.append(f"a session takes {used} lines of a terminal with {rows}:\n{block}")

    def make_recordings(self, text, directory):
        for name, case in RECORDING.findall(text):
            folder, _, file = case.partition("/")
            make_recording(pathlib.Path(directory) / name, folder, f"{file or 'run.sqlite'}.sql")

    def check_typed(self, block):
        for line in block.splitlines():
            if line.strip() and line not in self.ci_script:
                self.problems.append(f"'{line}' does not stand in .ci/run")

    def process(self):
        text = self.path.read_text()
        # Each second one closes and says nothing: what stands outside is not checked.
        if any((fence == "```") != (number % 2 == 1) for number, fence in enumerate(re.findall(r"^```.*$", text, re.M))):
            self.problems.append("the fences of its blocks do not pair")
        screen = SCREEN.search(text)
        with tempfile.TemporaryDirectory() as directory:
            self.make_recordings(text, directory)

            def replace(match):
                kind, block = match.groups()
                if kind == "sh":
                    self.check_typed(block)
                    return match.group(0)
                checked = self.check(block, directory)
                if screen:
                    self.check_screen(checked, int(screen.group(1)), int(screen.group(2)))
                return f"```console\n{checked}```"

            return text, FENCE.sub(replace, text)


class Mentions:
    """Checks the commands that documents mention against the program's own help."""

    def __init__(self, program, commands):
        self.program, self.commands, self.options = program, commands, {}
        self.parents = {command.split()[0] for command in commands if " " in command}

    def options_of(self, command):
        if command not in self.options:
            help_text = subprocess.run([str(self.program), *command.split(), "--help"], check=True, capture_output=True, text=True).stdout
            self.options[command] = set(OPTION.findall(help_text))
        return self.options[command]

    def problems(self, text):
        """Blocks of sessions are run, and prose may say what gpuwhy does: only code counts there."""
        blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)
        fenced = [block for kind, block in blocks if kind not in ("console", "cpp", "sql")]
        inline = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))
        for mention in MENTION.findall("\n".join(fenced + inline)):
            # What is quoted is a command of another program.
            words = re.sub(r"'[^']*'", "QUOTED", mention).split(" -- ")[0].split("#")[0].split()
            command = " ".join(words[:2])
            if command not in self.commands and (words[0] in self.commands or words[0] not in self.parents):
                command = words[0]
            if command not in self.commands and (len(words) == 1 or words[1].startswith("--")) and words[0] in self.parents:
                continue  # all commands of that name
            if command not in self.commands:
                yield f"gpuwhy has no command '{command}': 'gpuwhy {mention}'"
                continue
            for option in OPTION.findall(" ".join(words)):
                if option not in self.options_of(command):
                    yield f"gpuwhy {command} has no option {option}: 'gpuwhy {mention}'"


def odd_turns(source):
    """FILE:LINE, the phrase and what to write instead."""
    left_out = {source / name for name in UNSPOKEN + NOT_CHECKED_YET}
    paths = []
    for folder, folders, files in os.walk(source):
        folders[:] = [name for name in folders if pathlib.Path(folder, name) not in left_out]
        paths += [pathlib.Path(folder, name) for name in files if name.endswith(SPOKEN)]
    for path in sorted(set(paths) - left_out):
        text = path.read_text(errors="replace")
        if path.suffix == ".md":
            text = QUOTED.sub(lambda quoted: "\n" * quoted.group().count("\n"), text)
        for turn, plain in TURNS:
            for match in turn.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                yield f"{path.relative_to(source)}:{line}: '{' '.join(match.group().split())}' -> {plain}"


def main():
    arguments = testing.arguments("source", update=False, words=False)
    turns = list(odd_turns(arguments.source))
    for turn in turns:
        print(turn, file=sys.stderr)
    if arguments.words:
        return 1 if turns else 0
    program = pathlib.Path(arguments.program)
    ci_script = (arguments.source / ".ci/run").read_text().splitlines()
    ci_script = {line.strip() for line in ci_script}
    failed = bool(turns)
    shown = set()
    listed = json.loads(subprocess.run([str(program), "list", "commands", "--json"], check=True,
                                       capture_output=True).stdout)["rows"]
    mentions = Mentions(program, {row["command"] for row in listed} | PLUMBING)
    for path in [arguments.source / "README.md", *sorted((arguments.source / "docs").rglob("*.md"))]:
        document = Document(path, program, ci_script)
        before, after = document.process()
        if path.name == "cli.md":
            shown.update(document.commands)
        if arguments.update and before != after:
            path.write_text(after)
            continue
        for problem in document.problems + list(mentions.problems(before)):
            failed = True
            print(f"{path.relative_to(arguments.source)}: {problem}", file=sys.stderr)
    if (lines := len((arguments.source / "README.md").read_text().splitlines())) > README_LINES:
        failed = True
        print(f"README.md has {lines} lines, more than {README_LINES}", file=sys.stderr)
    for name in ["CONTRIBUTING.md", "SECURITY.md", "packaging/README.md", "tests/README.md"]:
        for problem in mentions.problems((arguments.source / name).read_text()):
            failed = True
            print(f"{name}: {problem}", file=sys.stderr)
    for row in listed:
        if f"gpuwhy {row['command']} --help" not in shown:
            failed = True
            print(f"docs/cli.md does not show gpuwhy {row['command']} --help", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
