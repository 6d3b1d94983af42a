#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One recording has one answer: the same word has the same number on the page, in the Markdown, on the terminal and in
metrics.json, up to the digits that are printed.

Compared with metrics.json, for one recording of each kind: the page's own copy of it, every number of the page that names
its key (data-key), with and without its scripts, and the sentences of PHRASES. Compared between the texts: cells of tables
and labelled values by table, row and column, and all other "words number unit" by their words. Of two texts that use the
same words, all that one says must be said by the other. Without Chromium scripts are not run, and the last line says so.
"""
import base64
import collections
import gzip
import html
import json
import pathlib
import re
import shutil
import subprocess
import sys

import make_engine_trace
import make_requests
import testing
from recording import GOLDEN, make_recording, make_sqlite

SCALES = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "min": 6e10, "h": 3.6e12, "%": 0.01, "x": 1, "B": 1, "": 1}
for power, letter in enumerate("KMGTP", 1):
    SCALES |= {f"{letter}iB": 1024**power, f"{letter}B/s": 1e3**power, f"{letter}B": 1e3**power, letter: 1e3**power}
KINDS = {unit: "time" for unit in ("ns", "us", "ms", "s", "min", "h")} | {"%": "share", "x": "factor", "": "count"}
NUMBER = r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?"
UNITS = r"(?:ns|us|ms|s|min|h|%|x|B|[KMGTP](?:i?B(?:/s)?)?)(?![\w/])"
VALUE = re.compile(rf"({NUMBER})(?: ?({UNITS}))?")
DURATION, SHARE = rf"({NUMBER} (?:ns|us|ms|s))(?!\w)", rf"({NUMBER} %)"
IN_TITLES = {"_ns": 1e-6, "flops_per_s": 1e-12}
MOST_PROBLEMS = 20

# The words of sentences that stand for one number of metrics.json, or for one of those that a wildcard names.
PHRASES = [
    (rf"(?:first token comes after|time to first token(?:, median)?:?) {DURATION}", "aggregates.ttft.p50_ns"),
    (rf"(?:further token takes|time per (?:output )?token(?:, median)?:?) {DURATION}", "aggregates.tpot.p50_ns"),
    (rf"({NUMBER}) tokens per second in total|^time per output token.*; ({NUMBER}) tokens/s", "aggregates.decode_tokens_per_s"),
    (rf"was busy {SHARE} of (?:its steady phase of |the )?{DURATION}", "busy[*].fraction busy[*].of_ns"),
    (rf"\bbusy:? {SHARE}(?! of)", "busy[*].fraction"),
    (rf"^of {DURATION}[^;]*; [^;]* recorded", "busy[*].of_ns"),
    (rf"recorded(?: for)? {DURATION}|{DURATION} (?:were )?recorded", "capture.duration_ns"),
    (rf"top opportunity: [^.,]+, up to ({NUMBER}x)", "findings[*].speedup"),
    (rf"(?:worth|saves) at most {DURATION}|^<= {DURATION}", "findings[*].saving_ns"),
    (rf"\bstep time {DURATION}", "steps[*].period_median_ns"),
    (rf"CPU range {DURATION}", "stages[*].host_median_ns"),
    (rf"GPU window {DURATION}", "steps[*].gpu_window_median_ns"),
]


def fail(message):
    raise AssertionError(message)


def value_of(text):
    """(number in base units, half of its last digit, kind) of "492 ms"; None for what is not a number."""
    found = VALUE.fullmatch(text.strip().strip("`"))
    if not found:
        return None
    (digits, _, exponent), unit = found[1].replace(",", "").partition("e"), found[2] or ""
    scale = SCALES[unit] * 10.0 ** int(exponent or 0)
    return float(digits) * scale, 0.501 * 10.0 ** -len(digits.partition(".")[2]) * scale, KINDS.get(unit) or unit[-1]


def agree(printed, number):
    value, half, _ = printed
    return abs(value - number) <= half + 1e-9 * abs(number)


def numbers_of(node, path=""):
    """Every number of a JSON document by its key, with rows by their place: findings[0].saving_ns."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from numbers_of(value, f"{path}.{key}" if path else key)
    elif isinstance(node, list):
        for place, value in enumerate(node):
            yield from numbers_of(value, f"{path}[{place}]")
    elif isinstance(node, (int, float)) and not isinstance(node, bool):
        yield path, float(node)


def at_key(node, key):
    """The value at a key of a report: rows are chosen by place or as [stage=decode,device=cuda:0]."""
    for name, choice in re.findall(r"([^.\[\]]+)|\[((?:\"(?:[^\"\\]|\\.)*\"|[^\]])*)\]", key):
        if node is None:
            return None
        if name:
            node = node.get(name)
        elif choice.isdigit():
            node = node[int(choice)]
        else:
            wanted = {field: json.loads(word) if word.startswith('"') else word
                      for field, word in re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|[^,]*)', choice)}
            node = next((row for row in node if all(str(row[field]) == word for field, word in wanted.items())), None)
    return node


KEYED = re.compile(r'<(\w+)[^>]*? data-key="([^"]*)"[^>]*? data-value="([^"]*)"[^>]*>(.*?)</\1>', re.DOTALL)
UNREAD = re.compile(r"<(script|style|svg|noscript|button|select)\b.*?</\1>", re.DOTALL)
TAGS = [(r"<dt[^>]*>(.*?)</dt>\s*<dd[^>]*>(.*?)</dd>", r"\n- \1: \2\n"),
        (r'<div class="tile-label">(.*?)</div><div class="tile-value"[^>]*>(.*?)</div>', r"\n- \1: \2\n"),
        (r"<tr[^>]*>", "\n"), (r"<t[hd]\b[^>]*>", " | "),
        (r"</?(?:p|li|h\d|div|caption|section|[uo]l|table|details|summary|figcaption)\b[^>]*>", "\n"), (r"<[^>]*>", " ")]


def page_text(page):
    """The text of a page or of a part of it, tables and labelled values as in Markdown."""
    page = UNREAD.sub("", page)
    for pattern, text in TAGS:
        page = re.sub(pattern, text, page, flags=re.DOTALL)
    return html.unescape(page)


def cells_of(table, head, row):
    """A row's numbers: table, what the row is of (its cells that are not numbers), column, text."""
    name = " ".join(cell.strip("`") for cell in row if not VALUE.match(cell) and cell != "n/a")
    return [(table, name, title, cell) for title, cell in zip(head, row) if value_of(cell)] if len(head) == len(row) else []


def text_cells(text):
    """Tables and labelled values of Markdown and of the terminal, and the lines that are in none."""
    cells, lines, head, title = [], [], [], ""
    for line in text.splitlines():
        words = line.strip()
        is_markdown = words.startswith("|")
        row = [cell.strip() for cell in words.strip("|").split("|")] if is_markdown else re.split(r" {2,}", words)
        if is_markdown or (line.startswith("  ") and len(row) > 2 and not words.startswith(("->", "<="))):
            if not head and (is_markdown or not any(map(value_of, row))):
                head = row
            else:
                cells += cells_of(title, head, row)
            continue
        if not words:
            continue
        head, title = [], words.lstrip("# ")
        fact = re.fullmatch(r"- (\w[\w :,]*): (.+)", words)
        if fact and value_of(fact[2]):
            cells.append(("", "", fact[1].lower(), fact[2]))
        lines.append(words.removeprefix("- "))
    return cells, lines


class Answers:
    """Numbers that the texts of one recording give, each against metrics.json and against one another."""

    def __init__(self, name, metrics):
        self.name, self.metrics, self.by_key = name, metrics, dict(numbers_of(metrics))
        self.num_compared, self.problems = 0, []
        for place, finding in enumerate(metrics["findings"]):
            left = finding["window_ns"] - finding["saving_ns"]
            self.by_key[f"findings[{place}].speedup"] = finding["window_ns"] / left if left > 0 else 0
        for place, device in enumerate(metrics["devices"]):  # what the first line of a report and the card are of
            busy = next((row for row in metrics["ledgers"] if row["device"] == device["device"] and
                         row["stage"] == device.get("busy_stage")), {})
            self.by_key[f"busy[{place}].fraction"] = busy.get("busy_fraction") or device["busy_fraction"]
            self.by_key[f"busy[{place}].of_ns"] = busy.get("base_ns", metrics["capture"]["duration_ns"])
        self.said = collections.defaultdict(lambda: collections.defaultdict(list))  # words -> where -> texts with values

    def wrong(self, where, what):
        self.problems.append(f"{self.name}: {where}: {what}")

    def add_page(self, where, page):
        packed = re.search(r'id="data-json">([^<]*)<', page)[1]
        for key, number in numbers_of(json.loads(gzip.decompress(base64.b64decode(packed)))["metrics"]):
            self.num_compared += 1
            if self.by_key.get(key) != number:
                self.wrong(f"{where}, its data", f"{key} is {number!r}, {self.by_key.get(key)!r} in metrics.json")
        for _, key, said, text in KEYED.findall(page):
            number = at_key(self.metrics, html.unescape(key))
            if number is None or float(said) != float(number):
                self.wrong(where, f"{key} is {said}, {number!r} in metrics.json")
                continue
            # A column may have the unit in its title: total_ms, TFLOP/s.
            scales = [1] + [scale for end, scale in IN_TITLES.items() if key.endswith(end)]
            shown = [value_of(one.group()) for one in VALUE.finditer(page_text(text))]
            if shown and not any(agree(one, float(number) * scale) for one in shown
                                 for scale in (scales if one[2] == "count" else [1])):
                self.wrong(where, f"{key} reads {page_text(text)!r}, {number!r} in metrics.json")
            self.num_compared += bool(shown)
        self.add(where, page_text(page[page.index("<body"):]))

    def add(self, where, text):
        cells, lines = text_cells(text)
        for table, row, column, text in cells:
            self.said[table.split(" (")[0], row, column][where].append((text, value_of(text)))
        for line in lines:
            for pattern, keys in PHRASES:
                for found in re.finditer(pattern, line, re.IGNORECASE):
                    texts = [text for text in found.groups() if text]
                    for text, key in zip(texts, keys.split() if " " in keys else [keys] * len(texts)):
                        self.check_phrase(where, found[0], text, key)
            for words, text in re.findall(rf"([A-Za-z][\w:*-]*(?: [\w:*-]+){{1,3}}) ({NUMBER} ?{UNITS})", line):
                value = value_of(text)
                self.said[re.sub(r"\d+", "#", words.lower()), value[2]][where].append((text, value))

    def check_phrase(self, where, words, text, key):
        pattern = re.escape(key).replace(r"\*", r"\d+")
        numbers = [number for name, number in self.by_key.items() if re.fullmatch(pattern, name)]
        if not any(agree(value_of(text), number) for number in numbers):
            self.wrong(where, f"{words!r}: {key} in metrics.json is {numbers or 'absent'}")
        self.num_compared += 1

    def finish(self):
        """Of two texts that use the same words, the one that says less says nothing that the other does not."""
        for words, by_source in self.said.items():
            sources = list(by_source.items())
            for (first, ours), (other, theirs) in zip(sources, sources[1:]):
                few, many = sorted((ours, theirs), key=lambda said: len(set(said)))
                for text, (value, half, _) in few:
                    self.num_compared += 1
                    if not any(abs(value - one) <= half + width for _, (one, width, _) in many):
                        self.wrong(" / ".join(words), f"{text} in {other if few is theirs else first}, "
                                   f"{sorted({text for text, _ in many})} in {first if few is theirs else other}")


def printed(*command):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)
    return result.stdout if result.returncode == 0 else fail(f"{' '.join(map(str, command))}: {result.stderr[-500:]}")


def drawn(path):
    """The page after its scripts; None without Chromium."""
    chromium = shutil.which("chromium")
    made = chromium and printed(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000",
                                "--dump-dom", f"file://{path}")
    return made if not made or "drawn" in made[:made.index("<body")] else fail(f"the scripts of {path.name} failed")


def examine(program, name, words, folder, spoil=str):
    """Reads all that is said of a recording or a metrics.json. Returns how many numbers were compared, and if a page was drawn."""
    out = folder / f"{name}.out"
    command, texts = "analyze", ["report.md", "stakeholder_summary.md"]
    if words[0].name == "metrics.json":
        command, texts = "report", ["report.md"]
        out.mkdir()
        shutil.copy(words[0], out)
        for form in "html", "md":
            (out / f"report.{form}").write_text(printed(program, command, *words, "--format", form))
    else:
        printed(program, command, *words, "-o", out)
    page = spoil((out / "report.html").read_text())
    (out / "report.html").write_text(page)
    answers = Answers(name, json.loads((out / "metrics.json").read_text()))
    answers.add_page("report.html", page)
    if picture := drawn(out / "report.html"):
        answers.add_page("report.html, drawn", picture)
    for text in texts:
        answers.add(text, (out / text).read_text())
    answers.add("terminal", printed(program, command, *words, "--top", "all"))
    answers.finish()
    if answers.problems:
        fail("\n".join(answers.problems[:MOST_PROBLEMS]))
    return answers.num_compared, bool(picture)


def run_with_overhead(program, folder):
    """The metrics.json of a run whose baseline pass timed two stages, one of them too seldom to tell its overhead."""
    metrics = json.loads(printed(program, "analyze", folder / "analyze-model.sqlite", "--json"))
    shares = ("overhead_fraction", "low_fraction", "high_fraction")
    row = {"stage": "decode_step", "baseline_mean_ns": 1.06e7, "profiled_mean_ns": 1.1e7, "reason": None}
    metrics["overhead"] = [{**row, **dict(zip(shares, (0.0377, 0.021, 0.055)))},
                           {**row, **dict.fromkeys(shares), "stage": "prefill", "reason": "one instance"}]
    (folder / "metrics.json").write_text(json.dumps(metrics))
    return folder / "metrics.json"


def recordings(program, folder, corpus):
    """(name, words of `analyze`) of one recording of each kind."""
    def golden(case, *words):
        return case, [make_recording(folder / f"{case}.sqlite", case), *words]

    def made(name, sql):
        (folder / name).write_text(sql)
        make_sqlite(folder / name, folder / f"{name}.sqlite")
        return name, [folder / f"{name}.sqlite"]

    yield golden("analyze-llm")
    yield golden("analyze-model", "--model", "deepseek_ocr")
    yield "window", [folder / "analyze-model.sqlite", "--steps", "20..50"]
    yield "overhead", [run_with_overhead(program, folder)]
    yield golden("table-layers")
    yield golden("analyze-requests", "--requests", GOLDEN / "analyze-requests/requests.jsonl", "--slo", "ttft=400ms,itl=30ms")
    yield golden("analyze-sqlite-ncu", "--ncu", GOLDEN / "analyze-sqlite-ncu/counters.csv")
    yield golden("analyze-graph")
    yield golden("analyze-nocuda")
    yield "kineto", [GOLDEN / "analyze-kineto/trace.json"]
    yield "engine", [GOLDEN / "analyze-engine/trace.json", "--model", GOLDEN / "analyze-engine/config.json"]
    yield "summary", [GOLDEN / "analyze-summary-ncu/kernels.csv", "--ncu", GOLDEN / "analyze-summary-ncu/counters.csv"]
    yield made("served", make_requests.serving_sql("--engine vllm --requests 60"))
    yield made("parallel", make_engine_trace.engine_sql("--workers 2 --replicas 2 --prefill-every 6 --mixed-every 5 --steps 24"))
    yield made("sglang", make_engine_trace.engine_sql("--engine sglang --depth 0 --steps 24 --eager"))
    for kind in "nsys_sqlite", "kineto":
        for path in sorted((corpus / kind).glob("*"), key=lambda one: one.stat().st_size)[2:8:2]:
            yield path.name, [path]


def spoiled(page):
    """The page with one number of its data changed by one nanosecond."""
    start = page.index(">", page.index('id="data-json"')) + 1
    data = json.loads(gzip.decompress(base64.b64decode(page[start:page.index("<", start)])))
    data["metrics"]["aggregates"]["tpot"]["p50_ns"] += 1
    return page[:start] + base64.b64encode(gzip.compress(json.dumps(data).encode())).decode() + page[page.index("<", start):]


# One number each, changed by hand in the page, and what must be said of it.
PLANTED = [
    (spoiled, "aggregates.tpot.p50_ns is"),
    (lambda page: re.sub(r"(further token takes )[\d.]+", r"\g<1>98.7", page), "further token takes 98.7"),
    (lambda page: re.sub(r'(data-key="stages\[stage=decode\].kernel_ns"[^>]*>)[^<]*', r"\g<1>1.23 ms", page), "1.23 ms"),
    (lambda page: page.replace("gaps of 1.92 ms", "gaps of 2.92 ms", 1), "gaps of"),
]


def self_test(program, folder):
    words = [make_recording(folder / "run.sqlite"), "--model", "deepseek_ocr"]
    examine(program, "as it is", words, folder)
    for number, (spoil, sign) in enumerate(PLANTED):
        try:
            examine(program, f"planted {number}", words, folder, spoil)
            said = "nothing"
        except AssertionError as error:
            said = str(error)
        assert sign in said, f"planted contradiction {number}: {sign!r} was expected, and {said} was said"
    print(f"{len(PLANTED)} planted contradictions found")


def main():
    options = testing.arguments("program", self_test=False)
    options.corpus = options.corpus or pathlib.Path()
    with testing.scratch() as folder:
        if options.self_test:
            return self_test(options.program, folder)
        num_read = num_numbers = num_drawn = 0
        for name, words in recordings(options.program, folder, options.corpus):
            compared, is_drawn = examine(options.program, name, words, folder)
            num_read, num_numbers, num_drawn = num_read + 1, num_numbers + compared, num_drawn + is_drawn
    print(f"{num_numbers} numbers of {num_read} recordings compared; {num_drawn} pages drawn by a browser"
          f"{'' if options.corpus.is_dir() else '; without the corpus'}")
    if num_read < 12 or num_numbers < 3000:
        return "too few numbers were compared to prove anything"
    return None


if __name__ == "__main__":
    sys.exit(main())
