#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checker of docs/specification.md: what its tables name exists; and of the folder of a run: files, sections and columns.

  check_specification.py --source . --program P --build B               the document
  check_specification.py --source . --program P --build B --self-test   plants faults into the document, and into a folder

Every item of the specification has one row. Code spans of the second column are commands (`gpuwhy run`), files and folders of the
project, files of a bundle (`BUNDLE/env.json`), keys of the configuration or presets (`profiling/ncu=light`), and exist; those of the
third are tests, as ctest names them. Numbers of tasks and stories are in the first column and nowhere else in the project, this file
included.

tests/real/specification.py makes folders and checks them with folder_problems().
"""
import argparse
import collections
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

DOCUMENT = "docs/specification.md"
NUMBER = re.compile(r"\bT0\d\d\b|\bUS\d\b")
SPAN = re.compile(r"`([^`]+)`")
TEST = re.compile(r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)", re.M)

# What the specification names: tasks, stories with their tests, integration points, files of a run.
ROWS = ([f"T{number:03}" for number in range(1, 38)] + [f"US{number}" for number in range(1, 5)] +
        [f"US{number} test" for number in range(1, 5)] + [f"Point {number}" for number in range(1, 6)] +
        ["tmp/stage2/<run_id>", "env.json", "config.yaml", "inputs.yaml", "nsys/", "nsys/run.qdrep", "nsys/run.sqlite", "nsys/summary.csv",
         "ncu/", "ncu/decode.ncu-rep", "ncu/raw.csv", "ncu/sections.txt", "operators.md", "kernels.md", "report.md",
         "stakeholder_summary.md", "stage1/metrics.json"])
SUMMARY_SECTIONS = ["Executive Summary", "Recommendations", "Environment", "Aggregates", "Per-Stage Timings", "MFU", "Stage Takeaways",
                    "Top Operators", "Top Kernels"]
REPORT_SECTIONS = ["Per-Stage Timings", "MFU"]
KERNEL_COLUMNS = ["kernel_name", "total_ms", "calls", "mean_ms", "device"]
DEFAULT_TOP = 20
FILES = ["env.json", "config.yaml", "inputs.yaml", "manifest.json", "metrics.json", "operators.md", "kernels.md", "report.md",
         "report.html", "stakeholder_summary.md", "baseline/", "nsys/", "ncu/"]


# -- the document

def rows_of(text, kind):
    """Cells of every row of the tables whose first column has this title."""
    title = ""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if not line.startswith("|"):
            title = ""
        elif not title:
            title = cells[0]
        elif title == kind and not line.startswith("|-"):
            yield cells


def tracked_texts(source):
    """Path and text of each text file of the project: of those that git knows, or of all where git is not there."""
    listed = subprocess.run(["git", "-C", source, "ls-files", "-z"], capture_output=True)
    names = listed.stdout.decode().split("\0")[:-1] if listed.returncode == 0 else [
        str(path.relative_to(source)) for path in source.rglob("*") if path.is_file() and "build" not in path.relative_to(source).parts]
    contents = {name: (source / name).read_bytes() for name in names if (source / name).is_file()}
    return {name: content.decode(errors="replace") for name, content in contents.items() if b"\0" not in content}


class Project:
    """What the document may name."""

    def __init__(self, source, program, build):
        self.source, self.texts = source, tracked_texts(source)
        self.document = (source / DOCUMENT).read_text()
        self.tests = set(re.findall(r"^add_test\(\[?=*\[?([\w.-]+)", (build / "tests/CTestTestfile.cmake").read_text(), re.M))
        for path in (source / "tests/unit").rglob("*_test.cc"):
            self.tests.update(f"{suite}.{name}" for suite, name in TEST.findall(path.read_text()))
        listed = subprocess.run([program, "list", "keys", "--json"], capture_output=True, check=True).stdout
        self.keys = {row["key"] for row in json.loads(listed)["rows"]}

    def exists(self, name):
        preset = re.fullmatch(r"([a-z]+(?:/[a-z]+)?)=(\w+)", name)
        return (name.startswith(("gpuwhy ", "BUNDLE/")) or name.split("=")[0] in self.keys or (self.source / name).exists() or
                (preset is not None and (preset[2] == "NAME" or (self.source / "conf" / preset[1] / f"{preset[2]}.yaml").exists())))


def document_problems(project):
    found, seen = [], collections.Counter()
    for cells in rows_of(project.document, "defect"):
        found += [f"{cells[0]}: {test} is not a test" for test in SPAN.findall(cells[-1]) if test not in project.tests]
    for cells in rows_of(project.document, "asked for"):
        name = cells[0].split(":")[0].strip("`")
        if len(cells) != 4 or not all(cells):
            found.append(f"{name}: {len(cells)} cells, some of them empty; four are wanted")
            continue
        seen[name] += 1
        found += [f"{name}: {span} is neither a file, a command, a key nor a test" for span in SPAN.findall(cells[1])
                  if not project.exists(span)]
        tests = SPAN.findall(cells[2])
        found += [f"{name}: {test} is not a test" for test in tests if test not in project.tests]
        found += [] if tests else [f"{name}: no test"]
    found += [f"{name}: {seen[name]} rows instead of 1" for name in ROWS if seen[name] != 1]
    found += [f"{name}: the specification has no such item" for name in seen if name not in ROWS]
    for artefact, names in (("stakeholder_summary.md", SUMMARY_SECTIONS), ("report.md", REPORT_SECTIONS), ("kernels.md", KERNEL_COLUMNS)):
        row = next((line for line in project.document.splitlines() if line.startswith(f"| `{artefact}`")), "")
        found += [f"{artefact}: its row does not name {name}" for name in names if name not in row]
    elsewhere = {**project.texts, DOCUMENT: re.sub(r"^\| [^|]*", "", project.document, flags=re.M)}
    for path, text in elsewhere.items():
        found += [f"{path} has {number}: such numbers are in the first column of {DOCUMENT} alone" for number in NUMBER.findall(text)]
    if "/gpuwhy-runs/" not in project.texts[".gitignore"].split():
        found.append(".gitignore does not have /gpuwhy-runs/, where runs go")
    return found


# -- a bundle, or the folder that `analyze -o` writes

def sections_of(text):
    """Title and text of each section."""
    return {part.split("\n", 1)[0]: part.split("\n", 1)[1].strip() for part in re.split(r"^## ", text, flags=re.M)[1:] if "\n" in part}


def table_of(text):
    """Columns and rows of the first table; cells as they were before they were written as Markdown."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    table = []
    for line in lines:
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        table.append([cell[1:-1].replace("\\|", "|") if cell.startswith("`") else
                      re.sub(r"\\(.)", r"\1", cell).replace("&lt;", "<").replace("&amp;", "&") for cell in cells])
        if len(table) > 2 and len(table[-1]) != len(table[0]):
            return table[0], table[2:-1]
    return (table[0], table[2:]) if table else ([], [])


def section_problems(folder, name, wanted):
    sections = sections_of((folder / name).read_text())
    found = [f"{name}: no section {title}" for title in wanted if title not in sections]
    found += [f"{name}: section {title} is empty" for title in wanted if sections.get(title) == ""]
    if not found and [title for title in sections if title in wanted] != wanted:
        found.append(f"{name}: sections in another order: {list(sections)}")
    return found


def kernel_problems(folder, top):
    """kernels.md: its columns, order, means and number of rows, and the same kernels as in metrics.json."""
    columns, rows = table_of((folder / "kernels.md").read_text())
    kernels = {}  # metrics.json has a row per stage
    for row in json.loads((folder / "metrics.json").read_text())["kernels"]:
        kernel = kernels.setdefault((row["kernel_name"], row["device"]), {"calls": 0, "total_ns": 0})
        for key in kernel:
            kernel[key] += row[key]
    if not kernels:
        return [] if not rows else ["kernels.md: rows without a kernel in metrics.json"]
    if columns[:len(KERNEL_COLUMNS)] != KERNEL_COLUMNS:
        return [f"kernels.md: columns {columns}"]
    found = [] if any("short" in column for column in columns) else ["kernels.md: no column for the short name"]
    if len(rows) != min(top, len(kernels)):
        found.append(f"kernels.md: {len(rows)} rows, of {len(kernels)} kernels; {top} were asked for")
    shown = []
    for row in rows:
        name, total, calls, mean, device = row[:5]
        kernel = kernels.get((name, device))
        if kernel is None:
            found.append(f"kernels.md: metrics.json has no such kernel: {' | '.join(row)}")
            continue
        shown.append(kernel["total_ns"])
        total_ms, mean_ms, num_calls = (float(cell.replace(",", "")) for cell in (total, mean, calls))
        if num_calls != kernel["calls"] or abs(total_ms - kernel["total_ns"] / 1e6) > max(0.0006, 0.006 * total_ms):
            found.append(f"kernels.md: {name!r}: {calls} calls, {total} ms; metrics.json has {kernel['calls']}, {kernel['total_ns']} ns")
        if abs(mean_ms - total_ms / num_calls) > max(0.0006, 0.006 * mean_ms):
            found.append(f"kernels.md: {name!r}: mean {mean} ms is not {total} ms / {calls}")
    if not found and shown != sorted((kernel["total_ns"] for kernel in kernels.values()), reverse=True)[:len(shown)]:
        found.append("kernels.md: rows are not those of the longest total times, in their order")
    return found


def folder_problems(folder, top=DEFAULT_TOP, files=FILES):
    found = [f"{name} is not there" for name in files if not ((folder / name).is_dir() if name.endswith("/") else
                                                              (folder / name).is_file() and (folder / name).stat().st_size)]
    if any(name.startswith(("kernels.md", "metrics.json", "stakeholder", "report.md")) for name in found):
        return found
    found += section_problems(folder, "stakeholder_summary.md", SUMMARY_SECTIONS)
    found += section_problems(folder, "report.md", REPORT_SECTIONS)
    found += kernel_problems(folder, top)
    if json.loads((folder / "metrics.json").read_text())["kernels"]:
        for name in ("stakeholder_summary.md", "report.md"):
            columns, rows = table_of(sections_of((folder / name).read_text()).get("Top Kernels", ""))
            found += [] if rows else [f"{name}: kernels were recorded, and Top Kernels has none"]
            if name == "report.md" and len(rows) != len(table_of((folder / "kernels.md").read_text())[1]):
                found.append("report.md and kernels.md have different numbers of kernels")
    return found


# -- the self-test

def planted_documents(project):
    """Each fault, as a change of the document or of another file, with the words that must name it."""
    text, number = project.document, "T0" + "17"
    row = next(line for line in text.splitlines() if line.startswith(f"| {number}"))
    cells = row.split(" | ")
    return [(text.replace(row + "\n", ""), {}, f"{number}: 0 rows"),
            (text.replace(row, row + "\n" + row), {}, f"{number}: 2 rows"),
            (text.replace(row, row.replace(cells[1], "`src/report/gone.cc`")), {}, "src/report/gone.cc is neither"),
            (text.replace(row, row.replace(cells[1], "`run.top_n_kernel`")), {}, "run.top_n_kernel is neither"),
            (text.replace(row, row.replace(cells[1], "`profiling/ncu=lite`")), {}, "profiling/ncu=lite is neither"),
            (text.replace(row, row.replace(cells[2], "`real.gone`")), {}, "real.gone is not a test"),
            (text.replace(row, row.replace(cells[2], "`NsysCmd.Gone`")), {}, "NsysCmd.Gone is not a test"),
            (text.replace(row, row.replace(cells[2], "by eye")), {}, "no test"),
            (text.replace(row, row.replace(cells[3], f"as {number} asks |")), {}, f"{DOCUMENT} has {number}"),
            (text.replace("mean_ms", "mean"), {}, "its row does not name mean_ms"),
            (text.replace("Stage Takeaways", "Takeaways"), {}, "its row does not name Stage Takeaways"),
            (text, {"src/cli/main.cc": f"// {number}: prints\n"}, f"src/cli/main.cc has {number}"),
            (text, {"README.md": "see US" + "3"}, "README.md has US" + "3"),
            (text, {".gitignore": "/build/\n"}, ".gitignore does not have")]


FIRST_ROW = "| `void a::b<c \\| d>(int)` | 2.000 | 4 | 0.500 | cuda:0 | `b` | `decode` |\n"
SECOND_ROW = "| `e` | 1.500 | 1 | 1.500 | cuda:0 | `e` | `decode` |\n"


def whole_folder(folder):
    """A folder without faults, of two kernels of which one is shown."""
    for name in FILES:
        if name.endswith("/"):
            (folder / name).mkdir()
        else:
            (folder / name).write_text("text\n")
    kernels = [{"kernel_name": "void a::b<c | d>(int)", "device": "cuda:0", "stage": "decode", "calls": 4, "total_ns": 2_000_000},
               {"kernel_name": "e", "device": "cuda:0", "stage": "decode", "calls": 1, "total_ns": 1_500_000}]
    (folder / "metrics.json").write_text(json.dumps({"kernels": kernels}))
    table = ("| kernel_name | total_ms | calls | mean_ms | device | short_name | stage |\n|---|---:|---:|---:|---|---|---|\n" + FIRST_ROW +
             SECOND_ROW)
    (folder / "kernels.md").write_text("# Kernels\n\n" + table)
    for name, titles in (("stakeholder_summary.md", SUMMARY_SECTIONS), ("report.md", [*REPORT_SECTIONS, "Top Kernels"])):
        (folder / name).write_text("".join(f"## {title}\n\n{table if title == 'Top Kernels' else 'n/a'}\n\n" for title in titles))


PLANTED_IN_FOLDERS = [
    ("stakeholder_summary.md", "## MFU", "## Efficiency", "no section MFU"),
    ("stakeholder_summary.md", "## Stage Takeaways\n\nn/a\n", "## Stage Takeaways\n\n", "section Stage Takeaways is empty"),
    ("stakeholder_summary.md", "## Environment\n\nn/a\n\n## Aggregates", "## Aggregates\n\nn/a\n\n## Environment", "in another order"),
    ("report.md", "## Per-Stage Timings", "## Timings", "no section Per-Stage Timings"),
    ("report.md", SECOND_ROW, "", "different numbers of kernels"),
    ("kernels.md", "| mean_ms", "| mean", "kernels.md: columns"),
    ("kernels.md", "short_name", "name", "no column for the short name"),
    ("kernels.md", "| 0.500", "| 0.600", "is not 2.000 ms / 4"),
    ("kernels.md", "`void a::b<c \\| d>(int)`", "`b`", "has no such kernel: b | 2.000"),
    ("kernels.md", "| 2.000 | 4 | 0.500", "| 2.800 | 4 | 0.700", "metrics.json has 4, 2000000 ns"),
    ("kernels.md", FIRST_ROW + SECOND_ROW, SECOND_ROW + FIRST_ROW, "in their order"),
    ("metrics.json", '"total_ns": 1500000', '"total_ns": 2500000', "1.500 ms; metrics.json has 1"),
    ("env.json", "text\n", "", "env.json is not there"),
]


def self_test(project):
    assert not document_problems(project), document_problems(project)
    whole, texts = project.document, {".gitignore": project.texts[".gitignore"]}  # the others take their time, and have no fault
    for document, changed, expected in planted_documents(project):
        assert document != whole or changed, f"nothing is planted for: {expected}"
        project.document, project.texts = document, {**texts, **changed}
        found = document_problems(project)
        assert any(expected in line for line in found), f"planted: {expected}; found: {found}"
    for name, old, new, expected in [("kernels.md", "", "", None), *PLANTED_IN_FOLDERS]:
        with tempfile.TemporaryDirectory() as directory:
            folder = pathlib.Path(directory)
            whole_folder(folder)
            text = (folder / name).read_text()
            assert old in text, (name, old)
            (folder / name).write_text(text.replace(old, new, 1))
            found = folder_problems(folder)
            assert any(expected in line for line in found) if expected else not found, f"planted: {expected}; found: {found}"
    with tempfile.TemporaryDirectory() as directory:
        whole_folder(pathlib.Path(directory))
        assert any("1 were asked for" in line for line in folder_problems(pathlib.Path(directory), top=1))
        shutil.rmtree(pathlib.Path(directory) / "ncu")
        assert folder_problems(pathlib.Path(directory)) == ["ncu/ is not there"]
    print(f"{len(planted_documents(project)) + len(PLANTED_IN_FOLDERS) + 2} planted faults found")
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    project = Project(arguments.source, arguments.program, arguments.build)
    if arguments.self_test:
        return self_test(project)
    found = document_problems(project)
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
