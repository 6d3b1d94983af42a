#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checker of the architecture: layers, includes and names.

The folders of src/ and what each may include are in CMakeLists.txt, one layer(...) call per folder; this script reads
them there, so the rule has one home. It also keeps printing, exiting and the environment inside cli/, and CLI11 inside
the one file that wraps it, and wants each type name of the headers to be defined once, since all live in one namespace.
Only a format's own importer contains its name; other files ask its FormatInfo.
No file takes a sentence, an advice, a verdict, a title or a key of metrics.json apart: their parts are members (results/finding.h).
No file compares a row's kind or a stage's role with its word: it asks RowName and role_of() (decisions/018).
The names of a bundle's files are in LAYOUT alone, which every layer may include: it is nothing but names.
A layer that other programs load (LOADED) shares no code with this one, only the headers named in SHARED_HEADERS.

The rooms of analysis are floors: a file includes files of its room and of those before it in ROOMS, and none of ON_TOP.
A room is a folder that one can survey: at most MAX_IN_ROOM files. A change of a header compiles at most MAX_REACHED
sources of other layers. The sources and the tests have a size that they may not exceed.

The JSON library is the slowest header to compile, so the number of sources that include it, directly or through other
headers, has a limit. Headers that only name Json include base/json_fwd.h.

Every source has a head whose first sentence names its job, and comments are at least MIN_COMMENT_SHARE of the lines.
"""
import pathlib
import re
import shutil
import sys
import tempfile

from violations import main

# Of a folder that is loaded into other programs: the headers that say what it leaves behind.
SHARED_HEADERS = {"nvtx": {"nvtx/range_file.h", "nvtx/nvtx_abi.h"}}

LAYOUT = "bundle/layout.h"
LITERAL = re.compile(r'"((?:[^"\s]*/)?([^"\s/]+))"')  # a name or a path; sentences have blanks

# The floors of analysis, and the headers above them all.
ROOMS = ("names", "stages", "kernels", "ranks", "steps", "idle", "operators", "structure", "efficiency", "counters",
         "timeline", "requests", "findings")
ON_TOP = {"analysis/profile.h", "analysis/rank_rows.h"}
ROOM_INCLUDE = re.compile(r"analysis/(\w+)/")

# Layers of many files: what is wanted of their rooms and headers.
LARGE_LAYERS = ("analysis", "ingest", "report", "session")
MAX_IN_ROOM = 24
MAX_REACHED = 60

MAX_SRC_LINES = 108_700
MAX_TEST_LINES = 62_450

MAX_JSON_SOURCES = 67
JSON_LIBRARY = "nlohmann/json.hpp"

MIN_COMMENT_SHARE = 0.09  # whole-line comments of non-blank lines, licence lines aside
HEAD = re.compile(r"(?:// SPDX[^\n]*\n)?(?://\n)*((?:// ?[^\n]+\n)*)")
QUESTION = re.compile(r"(What|Who|Where|Which|When|How|Why|Did|Does|Is|Are)\b|[^.:]*\?")

LAYER = re.compile(r"^layer\((\w+)\s+USES((?:\s+[a-z]+\b)*)", re.M)
INCLUDE = re.compile(r'^\s*#\s*include\s+"(([a-z_]+)/[^"]*)"', re.M)
ANY_INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.M)
TYPE = re.compile(r"^(?:struct|class|enum class|enum) (\w+)[^;\n]*\{", re.M)
FORMAT = re.compile(r'\.name = ("[^"]+")')
COMMENT = re.compile(r"//[^\n]*")

# Words of RowKind and StageRole in a comparison. The id of a finding may be one of them.
ROW_WORDS = r'"(?:all|startup|steady|ending|capture|outside|prefill|decode|decode_step|mixed|verify|draft|step|warmup|idle|graph_capture)"'
ROW_COMPARISON = re.compile(rf'(?<!\bid )[!=]= {ROW_WORDS}|{ROW_WORDS} [!=]=|starts_with\({ROW_WORDS}')
ROW_READERS = {"src/results/row.cc", "src/results/stage_role.cc"}
# Files that compare such a word all the same, and why. The list may only shrink.
ROW_COMPARISONS_LEFT = {
    "src/analysis/stages/stages.cc": "texts of ranges, which become stages here",
    "src/analysis/stages/step_markers.cc": "the table of engines' markers, likewise",
    "src/cli/option_values.cc": "--top all: no row",
    "src/report/sections/stakeholder.cc": "every stage that begins with decode",
    "src/report/words/workload_words.cc": "likewise",
    "src/session/record/rank_run.cc": "ranks.capture: all: no row",
}

# Texts of the program that are broken down or compared, by the members that hold them; and keys of metrics.json, where rows are.
PARSER = r"\.(?:starts_with|ends_with|contains|r?find\w*|substr|compare)\("
SAID = r"(?:\.|->)(?:sentence|more|next|title|missing|verdict|bound|advice\.text)\b"
PARSED_TEXT = re.compile(rf'{SAID}{PARSER}|{SAID} [!=]= (?:"|\w+(?:\[\w+\])?{SAID}|(?:sentence|title|text)\b)')
PARSED_KEY = re.compile(rf"\bkey(?:_path)?{PARSER}")
KEY_FOLDERS = {"analysis", "compare", "fleet", "report"}
# Files that do so all the same, and why. The list may only shrink.
PARSED_TEXTS_LEFT = {
    "src/compare/comparability.cc": "metrics to compare are found by their keys",
    "src/compare/words.cc": "likewise: names of metrics",
    "src/report/comparison/ci.cc": "likewise: names on a dashboard",
    "src/report/comparison/comparison_page.cc": "likewise",
    "src/report/comparison/comparison_sections.cc": "likewise",
    "src/report/document/html.cc": "a key that is too long is cut",
    "src/report/comparison/run_summary.cc": "a user's budget names a metric",
    "src/session/record/pass_marks.cc": "a breach that is there already",
}

# What only the command line may do, and the words that do it.
CLI_ONLY = re.compile(r"\bstd::(cout|cerr|clog|exit|abort|getenv|printf|puts)\b|\bfmt::print\b|\b(printf|fprintf|getenv|_exit)\s*\(")
CLI11 = re.compile(r"^\s*#\s*include\s+<CLI/", re.M)


def allowed_includes(source):
    text = (source / "CMakeLists.txt").read_text()
    layers = {name: set(uses.split()) for name, uses in LAYER.findall(text)}
    for name, uses in layers.items():
        for used in uses - layers.keys():
            sys.exit(f"CMakeLists.txt: layer {name} uses {used}, which is not a layer")
    return layers


def includers_of(source):
    """By header: the files of src/ that include it themselves."""
    root, includers = source / "src", {}
    for path in root.rglob("*.[ch]*"):
        for header in ANY_INCLUDE.findall(path.read_text()):
            includers.setdefault(header, set()).add(str(path.relative_to(root)))
    return includers


def sources_with(header, includers):
    """The sources of src/ that include a header, directly or through headers."""
    reached, waiting = set(), [header]
    while waiting:
        more = includers.get(waiting.pop(), set()) - reached
        reached |= more
        waiting += more
    return [name for name in reached if name.endswith(".cc")]


def room_violations(source, includers):
    """What is too large, or includes what is above it."""
    found = []
    root = source / "src"
    for layer in LARGE_LAYERS:
        for folder in [root / layer, *(path for path in (root / layer).rglob("*") if path.is_dir())]:
            name, count = str(folder.relative_to(root)), sum(path.is_file() for path in folder.iterdir())
            if count > MAX_IN_ROOM:
                found.append(f"src/{name} has {count} files directly, at most {MAX_IN_ROOM} are wanted: make a room")
        for path in (root / layer).rglob("*.h"):
            name = str(path.relative_to(root))
            count = sum(not user.startswith(f"{layer}/") for user in sources_with(name, includers))
            if count > MAX_REACHED:
                found.append(f"{count} sources of other layers include src/{name}, at most {MAX_REACHED} are wanted: "
                             "include in headers what they need, and no more")
    for path in sorted((root / "analysis").glob("*/**/*.[ch]*")):
        room, name = path.relative_to(root / "analysis").parts[0], path.relative_to(source)
        if room not in ROOMS:
            found.append(f"{name} is in a room that ROOMS does not list")
            continue
        for header in ANY_INCLUDE.findall(path.read_text()):
            of = ROOM_INCLUDE.match(header)
            if header in ON_TOP or of and of[1] in ROOMS and ROOMS.index(of[1]) > ROOMS.index(room):
                found.append(f"{name} includes {header}, which is above {room}")
    return found


def size_violations(source, spare_lines):
    def lines_in(folder, pattern):
        return sum(path.read_bytes().count(b"\n") for path in (source / folder).rglob(pattern)
                   if path.is_file() and "__pycache__" not in path.parts)

    return [f"{folder} has {lines:,} lines, at most {most:,} are wanted: delete as much as you add"
            for folder, lines, most in (("src", lines_in("src", "*.[ch]*"), MAX_SRC_LINES), ("tests", lines_in("tests", "*"), MAX_TEST_LINES))
            if lines > most + spare_lines]


def violations(source, spare_lines=0):
    layers = allowed_includes(source)
    includers = includers_of(source)
    formats = {name: path.relative_to(source) for path in (source / "src/ingest").rglob("*.cc")
               for name in FORMAT.findall(path.read_text())}
    layout = COMMENT.sub("", (source / "src" / LAYOUT).read_text())
    file_names = {name for _, name in LITERAL.findall(INCLUDE.sub("", layout)) if "." in name}
    found = []
    homes = {}
    compared = set()
    parsed = set()
    for folder in sorted(path for path in (source / "src").iterdir() if path.is_dir()):
        if folder.name not in layers:
            found.append(f"src/{folder.name} has no layer(...) line in CMakeLists.txt")
            continue
        allowed = layers[folder.name] | {folder.name}
        for path in sorted(folder.rglob("*.[ch]*")):
            name = path.relative_to(source)
            text = path.read_text()
            for header, included in INCLUDE.findall(text):
                if included not in allowed and header != LAYOUT:
                    found.append(f"{name} includes {included}/, which {folder.name} may not use")
                elif included != folder.name and header not in SHARED_HEADERS.get(included, {header}):
                    found.append(f"{name} includes {header}, which is only for programs that load {included}")
            problem = head_violation(text) if path.suffix == ".cc" else None
            if problem:
                found.append(f"{name} {problem}")
            code = COMMENT.sub("", text)
            for literal, file_name in LITERAL.findall(code):
                if file_name in file_names and str(name) != f"src/{LAYOUT}":
                    found.append(f'{name} has "{literal}": {LAYOUT} names the files of a bundle')
            for format_name, home in formats.items():
                if format_name in code and name != home:
                    found.append(f"{name} knows the format {format_name}: only {home} does")
            if folder.name != "cli":
                for match in CLI_ONLY.finditer(code):
                    found.append(f"{name} uses {match.group(0).rstrip('(')}: only cli/ prints, exits or reads the environment")
            for match in ROW_COMPARISON.finditer(code) if folder.name != "ingest" and str(name) not in ROW_READERS else []:
                compared.add(str(name))
                if str(name) not in ROW_COMPARISONS_LEFT:
                    found.append(f"{name} compares with a row's word: {match.group(0)}: ask RowName or role_of()")
            keys = PARSED_KEY.findall(code) if folder.name in KEY_FOLDERS else []
            for match in PARSED_TEXT.findall(code) + keys:
                parsed.add(str(name))
                if str(name) not in PARSED_TEXTS_LEFT:
                    found.append(f"{name} takes a text of the program apart: {match}: make what it wants a member")
            for type_name in TYPE.findall(code) if path.suffix == ".h" else []:
                if type_name in homes:
                    found.append(f"{name} defines {type_name}, which {homes[type_name]} defines too: they would be mixed up when linked")
                homes[type_name] = name
            if CLI11.search(code) and str(name) != "src/cli/args.cc":
                found.append(f"{name} includes CLI11: only src/cli/args.cc does")
    for name in sorted(ROW_COMPARISONS_LEFT.keys() - compared):
        found.append(f"{name} compares with no row's word any more: take it out of ROW_COMPARISONS_LEFT")
    for name in sorted(PARSED_TEXTS_LEFT.keys() - parsed):
        found.append(f"{name} takes no text apart any more: take it out of PARSED_TEXTS_LEFT")
    num_json = len(sources_with(JSON_LIBRARY, includers))
    if num_json > MAX_JSON_SOURCES:
        found.append(f"{num_json} sources include all of {JSON_LIBRARY}, at most {MAX_JSON_SOURCES} may: "
                     "include base/json_fwd.h in headers, or lower the number elsewhere")
    share = comment_share(source)
    if share < MIN_COMMENT_SHARE:
        found.append(f"comments are {share:.2%} of the lines of src/, at least {MIN_COMMENT_SHARE:.0%} are wanted")
    found += room_violations(source, includers) + size_violations(source, spare_lines)
    cycle = find_cycle(layers)
    if cycle:
        found.append("layers use each other in a circle: " + " -> ".join(cycle))
    return found


def head_violation(text):
    """What is wrong with the first sentence of a source's head, if anything."""
    head = HEAD.match(text).group(1).replace("//", " ").strip()
    if not head:
        return "has no head: a comment after the licence line that names its job"
    if QUESTION.match(head):
        return f"has a head that asks instead of naming the file's job: {head.splitlines()[0]}"
    return None


def comment_share(source):
    lines = [line.strip() for path in (source / "src").rglob("*.[ch]*") for line in path.read_text().splitlines()]
    lines = [line for line in lines if line]
    return sum(line.startswith("//") and "SPDX" not in line for line in lines) / len(lines)


def find_cycle(layers):
    def visit(name, path):
        if name in path:
            return path[path.index(name):] + [name]
        for used in layers[name]:
            cycle = visit(used, path + [name])
            if cycle:
                return cycle
        return None

    for name in layers:
        cycle = visit(name, [])
        if cycle:
            return cycle
    return None


PLANTS = [
    ("src/base/text.cc", '#include "cli/console.h"\n', "may not use"),
    ("src/analysis/findings/rule.h", '#include "report/report.h"\n', "may not use"),
    ("src/bundle/scrub.h", '#include "capture/tools.h"\n', "may not use"),
    ("src/nvtx/recorder.cc", '#include "base/error.h"\n', "may not use"),
    ("src/capture/tools.cc", '#include "nvtx/recorder.h"\n', "only for programs that load"),
    ("src/config/compose.cc", "void f() { std::cout << 1; }\n", "only cli/ prints"),
    ("src/capture/machine.cc", 'auto p = getenv("HOME");\n', "only cli/ prints"),
    ("src/cli/commands/list.cc", "#include <CLI/CLI.hpp>\n", "only src/cli/args.cc"),
    ("src/session/version.h", "struct Error {};\n", "defines Error"),
    ("src/report/sections/worth.cc", 'bool f(auto format) { return format == "nsys SQLite"; }\n', "knows the format"),
    ("src/report/sections/worth.cc", 'bool f(auto row) { return row.stage.text() == "capture"; }\n', "compares with a row's word"),
    ("src/compare/pace.cc", 'bool f(auto stage) { return "decode" != stage; }\n', "compares with a row's word"),
    ("src/report/sections/worth.cc", 'bool f(auto finding) { return finding.sentence.starts_with("a"); }\n', "takes a text"),
    ("src/report/sections/worth.cc", 'bool f(auto a, auto b) { return a.title == b.title; }\n', "takes a text"),
    ("src/compare/pace.cc", 'bool f(auto row) { return row.key.ends_with("_ns"); }\n', "takes a text"),
    ("src/base/text.h", '#include "base/json.h"\n', "include all of nlohmann/json.hpp"),
    ("src/cli/commands/list.cc", 'auto log = folder + "/log.txt";\n', "names the files of a bundle"),
    ("src/session/version.cc", 'auto sentence = "see log.txt"; auto page = "report.html";\n', "names the files of a bundle"),
    ("src/stray/stray.cc", "int x;\n", "no layer"),
    ("src/base/headless.cc", "// SPDX-License-Identifier: Apache-2.0\n#include <string>\n", "has no head"),
    ("src/base/riddle.cc", "// SPDX-License-Identifier: Apache-2.0\n//\n// Where does a\n// number go?\n", "asks"),
    ("src/base/riddle.cc", "// SPDX-License-Identifier: Apache-2.0\n//\n// A number, and whose\n// is it?\n", "asks"),
    ("src/base/bare.cc", "// SPDX-License-Identifier: Apache-2.0\n//\n// Numbers.\n" + "int x;\n" * 9000, "comments are"),
    ("src/analysis/counters/ncu_join.cc", '#include "analysis/findings/rule.h"\n', "which is above counters"),
    ("src/analysis/findings/workload.cc", '#include "analysis/profile.h"\n', "which is above findings"),
    ("src/analysis/attic/box.h", "// Things.\n", "in a room that ROOMS does not list"),
    ("src/cli/user_%d.cc", '// A user.\n#include "ingest/operators_csv.h"\n', "sources of other layers include src/ingest/operators_csv.h"),
    ("src/report/attic/box_%d.h", "// Things.\n", "make a room"),
    ("src/base/long.cc", "// SPDX-License-Identifier: Apache-2.0\n//\n// Numbers.\n\n" + "// Another.\n" * 20_000, "src has"),
    ("tests/long.py", "# Another.\n" * 90_000, "tests has"),
]
SPARE_LINES = 10_000  # while it plants: each plant adds lines


def self_test(source):
    """Plants one violation at a time into a copy and wants each to be found, and nothing else."""
    for path, text, expected in PLANTS:
        with tempfile.TemporaryDirectory() as temporary:
            copy = pathlib.Path(temporary)
            shutil.copytree(source / "src", copy / "src")
            shutil.copy(source / "CMakeLists.txt", copy)
            for target in {copy / path.replace("%d", str(number)) for number in range(MAX_REACHED)}:
                target.parent.mkdir(exist_ok=True)
                with target.open("a") as file:
                    file.write(text)
            found = violations(copy, SPARE_LINES)
            if len(found) != 1 or expected not in found[0]:
                sys.exit(f"planted {text!r} into {path}, found {found}")
    print(f"{len(PLANTS)} planted violations found")


if __name__ == "__main__":
    sys.exit(main(violations, self_test))
