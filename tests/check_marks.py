#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The modules of `run --mark` in Python programs, on a transformers package of a few lines: what is marked, what is told, and
that a program never notices."""
import csv
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import testing

MOST_START_INSTRUCTIONS = 5_000_000  # 1 to 2 ms

# As much of transformers as the hook looks at. A tensor is its shape.
FAKE = '''
class Tensor:
    def __init__(self, *shape): self.shape = shape

class Module:
    def __call__(self, *args, **kwargs): return self.forward(*args, **kwargs)

class GenerationMixin:
    def generate(self, inputs=None, generation_config=None, max_new_tokens=4, use_cache=True, **kwargs):
        batch, length = inputs.shape
        for i in range(max_new_tokens):
            queries = Tensor(batch, length if i == 0 else 1 if use_cache else length + i)
            self(input_ids=queries, past_key_values=[] if use_cache else None, use_cache=use_cache)
        return batch * max_new_tokens
'''
PROGRAM = '''
import sys, threading
from transformers.generation.utils import GenerationMixin, Module, Tensor
class Part(Module):
    def forward(self, **kwargs): pass
class Model(Module, GenerationMixin):
    fails_at = None
    def __init__(self): self.part, self.calls = Part(), 0
    def forward(self, **kwargs):
        self.calls += 1
        self.part(**kwargs)
        if self.calls == self.fails_at: raise KeyError("in forward")
model = Model()
'''


class Case:
    def __init__(self, program, folder):
        self.program, self.folder = program, pathlib.Path(folder)

    def package(self, utils, version="5.0.0"):
        root = self.folder / "site"
        shutil.rmtree(root, ignore_errors=True)
        (root / "transformers/generation").mkdir(parents=True)
        (root / "transformers/__init__.py").write_text(f"__version__ = '{version}'\n")
        (root / "transformers/generation/__init__.py").write_text("")
        (root / "transformers/generation/utils.py").write_text(utils)
        return root

    def run(self, text, *words, mark=("--mark", "transformers"), python=(sys.executable,), **environment):
        script = self.folder / "program.py"
        script.write_text(text)
        given = {**os.environ, "PYTHONPATH": str(self.folder / "site"), **environment}
        argv = [self.program, "run", "--progress", "none", "--passes", "baseline", "-o", self.folder / "runs", *mark, *words,
                "contract.workload_may_fail=true", "--", *python, str(script)]
        result = subprocess.run(argv, capture_output=True, text=True, env=given, timeout=120)
        bundle = pathlib.Path(result.stdout.strip())
        assert result.stdout.strip() and bundle.is_dir(), result
        with (bundle / "baseline/ranges.csv").open() as file:
            rows = [row for row in csv.DictReader(file)]
        findings = json.loads((bundle / "manifest.json").read_text())["run"]["contract"]["findings"]
        log = (bundle / "baseline/log.txt").read_text()
        return rows, [row["sentence"] for row in findings if row["reason"] == "marks_incomplete"], log

    def bare(self, text, python=(sys.executable,), **environment):
        script = self.folder / "program.py"
        script.write_text(text)
        given = {**os.environ, "PYTHONPATH": str(self.folder / "site"), **environment}
        result = subprocess.run([*python, str(script)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=given,
                                stdin=subprocess.DEVNULL)
        return result.stdout


def sums(rows):
    """Instances and tokens by name; all ranges must have ended."""
    found = {}
    for row in rows:
        assert row["domain"] == "LLM" and row["end_ns"], row
        count, tokens = found.get(row["name"], (0, 0))
        found[row["name"]] = (count + 1, tokens + int(row["payload"] or 0))
    return found


def check_stages(case):
    case.package(FAKE)
    rows, notes, log = case.run(PROGRAM + "print(model.generate(Tensor(3, 17)), model.generate(inputs=Tensor(2, 5), "
                                          "max_new_tokens=1), model.calls)\nmodel(input_ids=Tensor(1, 9))\n")
    assert sums(rows) == {"request": (2, 0), "prefill": (2, 61), "decode_all": (1, 0), "decode_step": (3, 9)}, sums(rows)
    assert notes == [] and log == "12 2 5\n", (notes, log)


def check_exception(case):
    """A forward that raises: the caller gets the exception, every range ends, and the next generate is marked."""
    case.package(FAKE)
    text = PROGRAM + """
Model.fails_at = 3
try:
    model.generate(Tensor(2, 7))
except KeyError as error:
    print("raised", error)
print(model.generate(Tensor(2, 7)))
"""
    rows, notes, log = case.run(text)
    assert sums(rows) == {"request": (2, 0), "prefill": (2, 28), "decode_all": (2, 0), "decode_step": (5, 10)}, sums(rows)
    assert log == "raised 'in forward'\n8\n" and notes == [], (log, notes)


def check_threads(case):
    case.package(FAKE)
    text = PROGRAM + """
threads = [threading.Thread(target=lambda: [Model().generate(Tensor(2, 3), max_new_tokens=50) for _ in range(4)])
           for _ in range(4)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
"""
    rows, _, _ = case.run(text)
    assert sums(rows) == {"request": (16, 0), "prefill": (16, 96), "decode_all": (16, 0), "decode_step": (784, 1568)}, sums(rows)


def check_without_cache(case):
    case.package(FAKE)
    rows, notes, _ = case.run(PROGRAM + "model.generate(Tensor(1, 4), use_cache=False)\n")
    assert sums(rows) == {"request": (1, 0), "prefill": (1, 4)}, sums(rows)
    assert len(notes) == 1 and "without a cache" in notes[0], notes


def check_nested(case):
    """A draft model inside of generate, and the same model: only the outer one counts."""
    case.package(FAKE)
    text = PROGRAM + """
class Pair(Model):
    def forward(self, **kwargs):
        super().forward(**kwargs)
        if self.calls < 9: model.generate(Tensor(1, 3)), self.part(input_ids=Tensor(1, 1))
Pair().generate(Tensor(2, 6))
"""
    rows, _, _ = case.run(text)
    assert sums(rows) == {"request": (1, 0), "prefill": (1, 12), "decode_all": (1, 0), "decode_step": (3, 6)}, sums(rows)


def check_other_versions(case):
    """No patch where it does not fit: the program runs, and the note says which version."""
    for utils, words in ((FAKE.replace("inputs=None, generation_config=None", "prompts=None, inputs=None"), "takes self, prompts"),
                         (FAKE.replace("class GenerationMixin", "class Mixin") + "\nGenerationMixin = Mixin()\n",
                          "no GenerationMixin.generate"),
                         (FAKE.replace("def generate", "def produce"), "no GenerationMixin.generate")):
        case.package(utils, "9.9.9")
        rows, notes, log = case.run("from transformers.generation import utils\nprint('fine')\n")
        assert rows == [] and log == "fine\n", (rows, log)
        assert len(notes) == 1 and words in notes[0] and "9.9.9" in notes[0], notes


def check_never_imported(case):
    rows, notes, log = case.run("print(1 + 1)\n")
    assert rows == [] and log == "2\n" and notes == ["no process of the program used transformers"], (rows, notes, log)
    _, notes, _ = case.run("import transformers.generation.utils\n", python=(sys.executable, "-E", "-I"))
    assert notes == ["no process of the program used transformers"], notes


def check_failing_import(case):
    """The error of a package that cannot be imported is its own."""
    case.package("raise ImportError('no such thing')\n")
    text = "try:\n  import transformers.generation.utils\nexcept ImportError as error:\n  print(error)\n"
    assert case.run(text)[2] == case.bare(text) == "no such thing\n"


def check_sitecustomize(case):
    """The user's own runs, also a wrong one; sys.path, the module and its loader are as they would be."""
    root = case.package(FAKE)
    text = """
import sys, inspect, os
import transformers.generation.utils as utils
print([p for p in sys.path if "marks" in p], getattr(sys.modules.get("sitecustomize"), "said", None))
print(type(utils.__loader__).__name__, type(utils.__spec__.loader).__name__, len(inspect.getsource(utils)))
print(str(inspect.signature(utils.GenerationMixin.generate)), utils.GenerationMixin.generate.__qualname__)
print(len(sys.path), len(sys.meta_path))
"""
    for own in ("said = 'hello'\nprint('customized')\n", "1 / 0\n", "raise ImportError('x', name='sitecustomize')\n", None):
        if own is None:
            (root / "sitecustomize.py").unlink()
        else:
            (root / "sitecustomize.py").write_text(own)
        marked, bare = case.run(text)[2], case.bare(text)
        assert marked == bare, (own, marked, bare)
    assert "customized" not in bare


def check_broken_marks(case, source):
    """Whatever is wrong with the marks themselves, the program does not notice."""
    root = case.package(FAKE)
    text = PROGRAM + "print(model.generate(Tensor(3, 17)), model.calls)\n"
    for file, broken in (("gpuwhy_marks.py", "def ("), ("gpuwhy_marks.py", "import nosuch"),
                         ("gpuwhy_mark_transformers.py", "1 / 0"), ("gpuwhy_mark_transformers.py", "x = "),
                         ("gpuwhy_mark_transformers.py", "def install(module, marks): raise RuntimeError('broken')"),
                         ("libgpuwhy_marks.so", "not a library"), ("libgpuwhy_marks.so", None)):
        folder, notes = case.folder / "marks", case.folder / "notes.txt"
        shutil.rmtree(folder, ignore_errors=True)
        notes.unlink(missing_ok=True)
        shutil.copytree(source / "src/marks/python", folder, ignore=shutil.ignore_patterns("__pycache__"))
        if broken is not None:
            (folder / file).write_text(broken)
        said = case.bare(text, PYTHONPATH=f"{folder}:{root}", GPUWHY_MARK="transformers", GPUWHY_MARK_NOTES=str(notes))
        assert said == "12 4\n", (file, broken, said)
        told = notes.read_text() if notes.exists() else ""
        # Where gpuwhy_marks.py itself is broken nothing can be told; gpuwhy run then says that nothing was imported.
        assert file == "gpuwhy_marks.py" or "no " in told, (file, broken, told)
    said = case.bare(text, PYTHONPATH=f"{folder}:{root}", GPUWHY_MARK="transformers", GPUWHY_MARK_NOTES="/nosuch/notes")
    assert said == "12 4\n", said


def check_stage_names(case):
    """With a = it is a rule, in run as in analyze; both at once."""
    case.package(FAKE)
    rows, notes, _ = case.run(PROGRAM + "model.generate(Tensor(3, 17))\n", "--mark", "answer=LLM:request")
    assert notes == [] and len(rows) == 6, (rows, notes)
    bundle = max((case.folder / "runs").iterdir(), key=lambda path: path.stat().st_mtime)
    stages = {row["stage"] for row in json.loads((bundle / "baseline/metrics.json").read_text())["stages"]}
    assert "answer" in stages, stages
    by_preset, _, _ = case.run(PROGRAM + "model.generate(Tensor(3, 17))\n", "workload=transformers", mark=())
    assert len(by_preset) == 6, by_preset


def check_usage(case):
    for argv, words in ((["run", "--mark", "nosuch", "--", "true"], "known: llama_cpp, transformers"),
                        (["run", "workload.mark=[other]", "--", "true"], "known: llama_cpp, transformers"),
                        (["analyze", "none.sqlite", "--mark", "transformers"], "STAGE=NAME"),
                        (["run", "--mark", "=x", "--", "true"], "STAGE=NAME")):
        result = subprocess.run([case.program, *argv], capture_output=True, text=True)
        assert result.returncode == 2 and words in result.stderr, result
    dry = subprocess.run([case.program, "run", "--dry-run", "--passes", "baseline", "--mark", "transformers", "--", "true"],
                         capture_output=True, text=True)
    assert "PYTHONPATH=SCRATCH/marks" in dry.stdout and "GPUWHY_MARK=transformers" in dry.stdout, dry


def check_start(case, source):
    """A Python program without transformers pays little at its start: in instructions, which other programs do not change."""
    if not shutil.which("valgrind"):
        print("  start of Python: not counted, valgrind is not installed (tools/install-deps.sh build)")
        return
    folder = case.folder / "marks"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source / "src/marks/python", folder, ignore=shutil.ignore_patterns("__pycache__"))

    def instructions(environment):
        said = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", sys.executable, "-c", "pass"],
                              env=environment, check=True, capture_output=True, text=True).stderr
        return int(re.search(r"refs:\s+([\d,]+)", said)[1].replace(",", ""))

    bare = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")}
    bare["PYTHONHASHSEED"] = "0"
    marked = {**bare, "PYTHONPATH": str(folder), "GPUWHY_MARK": "transformers", "GPUWHY_MARK_NOTES": str(case.folder / "n")}
    subprocess.run([sys.executable, "-c", "pass"], env=marked, check=True)  # writes the .pyc files
    added = instructions(marked) - instructions(bare)
    print(f"  start of Python: {added:+,} instructions")
    assert 0 < added < MOST_START_INSTRUCTIONS, added


def main():
    arguments = testing.arguments("program", "source", only=None)
    with tempfile.TemporaryDirectory(prefix="gpuwhy-marks-") as folder:
        case = Case(arguments.program, folder)
        case.package(FAKE)
        for name, check in sorted(globals().items()):
            if name.startswith("check_") and (not arguments.only or arguments.only in name):
                start = time.time()
                check(case, arguments.source) if name in ("check_broken_marks", "check_start") else check(case)
                print(f"{name[6:]}: {time.time() - start:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
