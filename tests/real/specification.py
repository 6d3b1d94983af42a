#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files, sections and columns that docs/specification.md promises, in folders that are made here; see check_specification.py.

A program without a GPU under the real nsys, on two model targets; a program with GPU work, where doubles of nsys and ncu deliver a
made recording (ncu_playback.py); a trace with operators; the DeepSeek-OCR files of the corpus. Nothing here shows what a real GPU would
deliver. All that is missing is said at the end, not only the first."""
import collections
import csv
import json
import pathlib
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys

from ncu_playback import NCU, NSYS, double, recorded_report
from runs import Runner, guarded

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))
import testing
from check_specification import DEFAULT_TOP, DOCUMENT, REPORT_SECTIONS, folder_problems, sections_of, table_of  # noqa: E402
from recording import make_recording  # noqa: E402

OF_ANALYZE = ["metrics.json", "report.html", "report.md", "stakeholder_summary.md", "kernels.md", "operators.md"]


class Bundles:
    def __init__(self, program, workload, corpus):
        self.program, self.workload, self.corpus = program, workload, corpus
        self.runner = Runner(program, workload)
        self.found, self.files = [], set()

    def take(self, folder, what, **options):
        self.found += [f"{what}: {problem}" for problem in folder_problems(folder, **options)]
        self.files.update(str(path.relative_to(folder)) for path in folder.rglob("*"))

    def expect(self, condition, what):
        if not condition:
            self.found.append(what)

    def analyze(self, name, *words):
        folder = self.runner.directory / name
        result = subprocess.run([self.program, "analyze", *words, "-o", folder], capture_output=True, text=True, timeout=120)
        self.expect(result.returncode == 0, f"{name}: analyze exits {result.returncode}: {result.stderr}")
        return folder if result.returncode == 0 else None

    def check_without_gpu(self):
        """One command, two models: the same files, each with its own model's name and size."""
        listed = json.loads(subprocess.run([self.program, "list", "models", "--json"], capture_output=True, check=True).stdout)["rows"]
        files, inputs = {}, self.runner.directory / "inputs of this run.yaml"
        inputs.write_text("pages: [page-1.png]\n")
        for target in ("deepseek_ocr", "llama_3_1_8b"):
            run = self.runner.run("+run.mode=deep", f"+model.target={target}", f"+inputs.manifest={inputs}")
            assert run.code == 0, run
            self.take(run.bundle, target)
            row = next(row for row in listed if row["model"] == target)
            model = run.run_part()["model"]
            self.expect((model["target"], model["name"], model["params"]) == (target, row["name"], row["params"]), f"{target}: {model}")
            fed = (run.bundle / "inputs.yaml").read_text()
            self.expect(f"target: {target}" in fed and f"manifest: {inputs}" in fed, f"{target}: inputs.yaml: {fed}")
            stages = {stage["stage"] for stage in run.json("metrics.json")["stages"]}
            self.expect({"prefill", "decode"} <= stages, f"{target}: stages {stages}")
            self.expect(run.step("ncu")["reason"] == "no_gpu", f"{target}: ncu/ is empty without a reason: {run.step('ncu')}")
            for name in ("nsys/run.sqlite", "nsys/cmd.txt", "nsys/log.txt", "baseline/metrics.json", "baseline/ranges.csv"):
                self.expect((run.bundle / name).is_file(), f"{target}: no {name}")
            verified = subprocess.run([self.program, "view", "--verify", run.bundle], capture_output=True)
            self.expect(verified.returncode == 0, f"{target}: {verified.stdout}")
            files[target] = {str(path.relative_to(run.bundle)) for path in run.bundle.rglob("*")} - {"nsys/run.nsys-rep"}
        self.expect(len(set(map(frozenset, files.values()))) == 1, f"targets leave different files: {files}")

    def made_recording(self, folder):
        """The golden case `analyze-model` with thirty kernels in place of one; a long name and one with signs of Markdown."""
        recording = make_recording(folder / "made.sqlite")
        long_name = f"void ns::gemv<{', '.join(f'ns::Part<(int){i}, float *>' for i in range(20))}>(float *)"
        names = [long_name, "void ns::pick<&(ns::operator|(ns::Set *, int))>(_Value, <unnamed>)",
                 *(f"void ns::gemv_{i}<(int){i}>(float const *)" for i in range(28))]
        with sqlite3.connect(recording) as database:
            database.executemany("INSERT INTO StringIds VALUES (?, ?)", list(enumerate(names, 1000)))
            database.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET demangledName = 1000 + correlationId % 30, "
                             "end = end - correlationId % 30 * 10000")
        return recording

    def check_with_gpu_work(self):
        tools = self.runner.directory / "tools"
        tools.mkdir()
        seen = tools / "seen"
        environment = {
            "GPUWHY_NSYS": double(tools / "nsys", NSYS, RECORDING=str(self.made_recording(tools)),
                                  REAL_NSYS=shutil.which("nsys")),
            "GPUWHY_NCU": double(tools / "ncu", NCU, REPORT=str(recorded_report(self.corpus)), SEEN=str(seen), REAL_NCU=shutil.which("ncu"))}
        for top, words in ((DEFAULT_TOP, []), (3, ["run.top_n_kernels=3"])):
            seen.write_text("")
            run = self.runner.run("--passes", "nsys,ncu", "model.target=deepseek_ocr", *words, **environment)
            assert run.code == 0, run
            what = f"with GPU work, top {top}"
            self.take(run.bundle, what, top=top)
            plan = run.json("ncu/plan.json")
            with sqlite3.connect(run.bundle / "nsys/run.sqlite") as database:
                totals = dict(database.execute('SELECT s.value, sum(k."end" - k.start) FROM CUPTI_ACTIVITY_KIND_KERNEL k '
                                               "JOIN StringIds s ON s.id = k.demangledName GROUP BY 1 ORDER BY 2 DESC"))
            kernels = collections.Counter()
            for kernel in run.json("metrics.json")["kernels"]:  # a row per stage
                kernels[kernel["kernel_name"]] += kernel["total_ns"]
            self.expect(kernels == totals, f"{what}: kernels are not those of the recording")
            # The recording comes first, and what it says is slow is what ncu is asked for, at most as often as configured.
            self.expect([step["pass"] for step in run.run_part()["passes"]] == ["nsys", "ncu"], f"{what}: {run.run_part()['passes']}")
            planned = [kernel["kernel_name"] for kernel in plan["kernels"]]
            self.expect(planned and len(planned) <= top and set(planned) <= set(totals), f"{what}: planned {planned}")
            self.expect(max(totals, key=totals.get) in planned, f"{what}: the longest kernel is not planned: {planned}")
            commands = [json.loads(line) for line in seen.read_text().splitlines()]
            wanted = [re.compile(argv[argv.index("--kernel-name") + 1].removeprefix("regex:")) for argv in commands]
            listed = {row[0] for row in table_of((run.bundle / "kernels.md").read_text())[1]}
            for name in set(planned) & listed:
                self.expect(any(expression.search(name) for expression in wanted), f"{what}: no --kernel-name of ncu matches {name!r}")
            self.expect(set(planned) & listed, f"{what}: kernels.md has none of the kernels that ncu measured")
            for argv in commands:
                self.expect(argv[argv.index("--target-processes") + 1] == "all" and "--nvtx" in argv and "--nvtx-include" in argv,
                            f"{what}: {argv}")
            self.check_printed("table", "kernels", run.bundle, "--format", "csv", wanted=max(totals, key=totals.get))
            self.check_printed("ncu", next((run.bundle / "ncu").glob("*.ncu-rep")), "--format", "csv", wanted="id,kernel_name")
            mfu = [row["mfu"]["wall_fraction"] for row in run.json("metrics.json")["efficiency"]["stages"]]
            self.expect(any(mfu), f"{what}: no MFU of a known model on a known GPU")
            for name, sections in (("report.md", REPORT_SECTIONS), ("stakeholder_summary.md", ["Per-Stage Timings", "MFU"])):
                for section in sections:
                    rows = table_of(sections_of((run.bundle / name).read_text()).get(section, ""))[1]
                    self.expect(any("decode" in cell for row in rows for cell in row), f"{what}: {name}, {section} has no row of decode")

    def check_printed(self, *words, wanted):
        """The tables that the specification keeps as files are printed on request."""
        printed = subprocess.run([self.program, *words], capture_output=True, text=True, timeout=120)
        self.expect(printed.returncode == 0 and wanted in printed.stdout, f"{words}: {printed}")

    def check_operators_and_kernels(self):
        """Both tables in the summary, of a recording that has both."""
        folder = self.analyze("operators", TESTS / "golden/analyze-kineto/trace.json", "--top", "2")
        if folder:
            self.take(folder, "a trace with operators", top=2, files=OF_ANALYZE)
            sections = sections_of((folder / "stakeholder_summary.md").read_text())
            for title, name in (("Top Operators", "aten::addmm"), ("Top Kernels", "sm90_xmma_gemm_bf16bf16_tn")):
                rows = table_of(sections.get(title, ""))[1]
                self.expect(any(name in cell for row in rows for cell in row), f"stakeholder_summary.md: {title} does not have {name}")
            columns, rows = table_of((folder / "operators.md").read_text())
            self.expect(columns and rows, "operators.md has no table")

    def check_commands(self):
        """What would be started, as asked: options of nsys and ncu."""
        def dry(*words):
            result = subprocess.run([self.program, "run", "--dry-run", *words, "--", self.workload], capture_output=True, text=True,
                                    timeout=120)
            assert result.returncode == 0, result
            lines = result.stdout.splitlines()
            return {name[2:]: shlex.split(command) for name, command in zip(lines[::2], lines[1::2])}

        def values(argv, option):
            return [value for word, value in zip(argv, argv[1:]) if word == option]

        commands = dry("run.gate=LLM:decode_all")
        for option in ("--trace=cuda,nvtx,osrt", "--capture-range=nvtx", "--nvtx-capture=decode_all@LLM", "--output=BUNDLE/nsys/run.nsys-rep"):
            self.expect(option in commands["nsys"], f"nsys: {option} is not in {commands['nsys']}")
        ncu = dry()["ncu"]
        self.expect(values(ncu, "--target-processes") == ["all"], f"ncu follows not all processes: {ncu}")
        self.expect("--nvtx" in ncu and values(ncu, "--nvtx-include") == ["LLM@prefill/", "LLM@decode_all/"], f"ncu: ranges: {ncu}")
        self.expect(any("SpeedOfLight" in section for section in values(ncu, "--section")), f"ncu: sections: {ncu}")
        self.expect(any("BUNDLE/ncu/" in value for value in values(ncu, "--export")), f"ncu: output: {ncu}")
        metrics = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
        asked = dry("pipeline.ncu.set=roofline", 'pipeline.ncu.sections=["regex:.*SpeedOfLight.*"]', f"pipeline.ncu.metrics=[{metrics}]")["ncu"]
        for option, value in (("--set", "roofline"), ("--section", "regex:.*SpeedOfLight.*"), ("--metrics", metrics)):
            self.expect(values(asked, option) == [value], f"ncu: {option} {value} is not in {asked}")
        light, deep = dry("run.mode=light")["ncu"], values(ncu, "--section")
        self.expect(0 < len(values(light, "--section")) < len(deep), f"light mode measures as much: {light}")

    def check_deepseek_ocr(self):
        """The files of the specification's own model: a kernel summary of nsys, and twenty kernels of ncu in seven tables each."""
        table = self.corpus / "nsys_csv/dsocr_rtx5090/all-stage_cuda_gpu_kern_sum.csv"
        counters = self.corpus / "ncu_csv/dsocr_rtx5090"
        if not table.is_file() or not counters.is_dir():
            print("the corpus is not here: nothing is shown for the DeepSeek-OCR files")
            return
        folder = self.analyze("deepseek", table, "--ncu", counters, "--model", "deepseek_ocr")
        if folder is None:
            return
        self.take(folder, "DeepSeek-OCR", files=OF_ANALYZE)
        with open(table, newline="") as file:
            largest = sorted(csv.DictReader(file), key=lambda row: -int(row["Total Time (ns)"]))[:DEFAULT_TOP]
        shown = [(row[0], int(row[2].replace(",", ""))) for row in table_of((folder / "kernels.md").read_text())[1]]
        self.expect(sorted(shown) == sorted((row["Name"], int(row["Instances"])) for row in largest), "DeepSeek-OCR: kernels.md is not the CSV")
        self.expect(json.loads((folder / "metrics.json").read_text())["counters"], "DeepSeek-OCR: no counters")
        summary = (folder / "stakeholder_summary.md").read_text()
        self.expect("without GPU work" not in summary and "DeepSeek-OCR" in summary, "DeepSeek-OCR: its summary denies its kernels")

    def check_files_of_the_document(self):
        named = set(re.findall(r"`BUNDLE/([^`]+)`", (TESTS.parent / DOCUMENT).read_text()))
        for name in sorted(named):
            pattern = re.compile(re.escape(name.rstrip("/")).replace(r"\*", "[^/]*"))
            self.expect(any(pattern.fullmatch(file) for file in self.files), f"no bundle has {name}, which {DOCUMENT} names")

    def check_all(self):
        try:
            for check in (self.check_commands, self.check_without_gpu, self.check_with_gpu_work, self.check_operators_and_kernels,
                          self.check_deepseek_ocr, self.check_files_of_the_document):
                check()
        finally:
            self.runner.close()
        return self.found


def main():
    arguments = testing.arguments("program", "workload", "corpus")
    if not shutil.which("nsys") or not shutil.which("ncu"):
        testing.skip("nsys and ncu are not installed (tools/install-deps.sh nsight)")
    if recorded_report(arguments.corpus) is None:
        testing.skip("neither the corpus nor the examples of Nsight Compute are here: no report to deliver")
    found = Bundles(arguments.program, arguments.workload, arguments.corpus).check_all()
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    guarded(main)
