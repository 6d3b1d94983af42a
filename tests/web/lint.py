#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test of the scripts of the page and of its tests by ESLint (eslint.config.cjs).

The files of web/ are checked as the one script that src/report/document/page.cc joins them to: a name that one file declares and another uses
is then known, and one that no file uses is found. With --self-test, planted faults must be found."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

PAGE = "web/page.js"
PLANTED = {"an unused variable": ("let unused = 1;\n", "no-unused-vars"),
           "a name that nobody declares": ("drawn.push(1);\n", "no-undef"),
           "a name declared twice": ("var again = 1; var again = again;\n", "no-redeclare")}


def joined(source):
    """The script of the page, and the file and line that each of its lines comes from."""
    names = re.search(r"kScripts\[\] = \{(.*?)\};", (source / "src/report/document/page.cc").read_text(), re.DOTALL)[1]
    files = [source / "web" / name for name in re.findall(r'"([^"]+)"', names)]
    left_out = {path.name for path in (source / "web").glob("*.js")} - {path.name for path in files}
    if left_out or not files:
        sys.exit(f"the page has none of {', '.join(sorted(left_out))}")
    lines, places = ["(() => {", "'use strict';"], [("page.cc", 1)] * 2
    for path in files:
        own = path.read_text().splitlines()
        lines += own
        places += [(f"web/{path.name}", number) for number in range(1, len(own) + 1)]
    return "\n".join([*lines, "})();", ""]), [*places, ("page.cc", 1)]


def findings(eslint, source, name, text, places=None):
    """What ESLint says of a text: the file, the line, the rule and the sentence."""
    command = [*eslint, "--config", source / "eslint.config.cjs", "--format", "json", "--stdin", "--stdin-filename", name]
    result = subprocess.run(command, input=text, cwd=source, capture_output=True, text=True, timeout=280)
    if result.returncode > 1:
        sys.exit(result.stderr)
    for message in json.loads(result.stdout)[0]["messages"]:
        line = message.get("line", 1)
        file, line = places[line - 1] if places else (name, line)
        yield f"{file}:{line}: {message['ruleId']}: {message['message']}"


def main():
    arguments = testing.arguments("source", self_test=False)
    source = arguments.source.resolve()
    modules = pathlib.Path(os.environ.get("GPUWHY_WEB_PREFIX", pathlib.Path.home() / ".cache/gpuwhy/web")) / "node_modules"
    if not shutil.which("node") or not (modules / "eslint").is_dir() or not (modules / "globals").is_dir():
        testing.skip("needs node and ESLint, which tools/install-deps.sh web installs")
    os.environ["NODE_PATH"] = str(modules)
    eslint = ["node", modules / "eslint/bin/eslint.js"]
    page, places = joined(source)
    tests = {str(path.relative_to(source)): path.read_text() for path in sorted((source / "tests/web").glob("*.cjs"))}
    if not arguments.self_test:
        found = list(findings(eslint, source, PAGE, page, places))
        for name, text in {**tests, "eslint.config.cjs": (source / "eslint.config.cjs").read_text()}.items():
            found += findings(eslint, source, name, text)
        if found:
            sys.exit("\n".join(found))
        print(f"ESLint finds nothing in {len(set(places)):,} lines of web/ and in {len(tests)} scripts of its tests")
        return
    end = page.rindex("})();")
    for fault, (line, rule) in PLANTED.items():
        for name, text in [(PAGE, page[:end] + line + page[end:]), *((name, text + line) for name, text in tests.items())]:
            if not any(f" {rule}: " in finding for finding in findings(eslint, source, name, text)):
                sys.exit(f"{fault} is not found in {name}")
    print(f"{len(PLANTED)} planted faults are found")


if __name__ == "__main__":
    main()
