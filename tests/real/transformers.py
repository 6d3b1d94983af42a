#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hugging Face transformers under `gpuwhy run --mark transformers`: real PyTorch on the CPU, models of random weights.

The scripts are what a user would write. They count their own forward calls, by hooks of PyTorch, and print what they generated:
stages, tokens and results must be the same, marked or not."""
import csv
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

from runs import Runner, guarded

# A marked step against the same step without, CPU time. Where more wants to run than there are processors, all of it takes longer.
IS_BUSY = os.getloadavg()[0] > os.cpu_count() - 0.5
MOST_STEP_US = 6 if IS_BUSY else 2

SETUP = """
import json, sys, threading, torch, transformers
torch.manual_seed(7)
torch.set_num_threads(1)
transformers.logging.set_verbosity_error()
SMALL = dict(vocab_size=128, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=512, bos_token_id=1, eos_token_id=None, pad_token_id=0)
KINDS = {
    "llama": ("LlamaConfig", "LlamaForCausalLM", {}),
    "qwen": ("Qwen3Config", "Qwen3ForCausalLM", {"head_dim": 8}),
    "mixtral": ("MixtralConfig", "MixtralForCausalLM", {"num_local_experts": 4, "num_experts_per_tok": 2}),
    "qwen_moe": ("Qwen3MoeConfig", "Qwen3MoeForCausalLM",
                 {"head_dim": 8, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}),
}
def make(kind):
    config, model, more = KINDS[kind]
    return getattr(transformers, model)(getattr(transformers, config)(**SMALL, **more)).eval()
counts = {"prefill": [0, 0], "decode_step": [0, 0], "verify": [0, 0], "generate": 0}
state = threading.local()
def counted(model):
    # By the program itself: the first forward of a generate, and those of one position.
    def before(module, args, kwargs):
        if getattr(state, "is_first", None) is None:
            return
        batch, length = kwargs["input_ids"].shape
        name = "prefill" if state.is_first else "decode_step" if length == 1 else "verify"
        if state.is_first and state.chunks:
            state.chunks -= 1
            counts[name][0] += state.chunks == 0
        else:
            counts[name][0] += 1
        state.is_first = state.is_first and state.chunks > 0
        counts[name][1] += batch * length
    model.register_forward_pre_hook(before, with_kwargs=True)
    return model
results = []
def generate(model, ids, chunks=0, **options):
    state.is_first, state.chunks = True, chunks
    counts["generate"] += 1
    try:
        results.append(model.generate(ids, **options).tolist())
    finally:
        state.is_first = None
"""

GENERATE = SETUP + """
model = counted(make(sys.argv[1]))
ids = torch.randint(2, 128, (3, 17))
generate(model, ids, max_new_tokens=9, do_sample=False)
generate(model, ids[:1, :1], max_new_tokens=5, do_sample=False)
generate(model, ids, max_new_tokens=1, do_sample=False)
generate(model, ids, max_new_tokens=9, do_sample=True, top_k=20, num_return_sequences=2)
generate(model, ids, max_new_tokens=7, num_beams=4, do_sample=False)
generate(model, ids, max_new_tokens=6, do_sample=False, prefill_chunk_size=5, chunks=4)
generate(model, ids[:1], max_new_tokens=12, do_sample=False, prompt_lookup_num_tokens=3)
model(input_ids=ids)
print(json.dumps({"counts": counts, "results": results}))
"""

FAILS = SETUP + """
model = counted(make("llama"))
calls = []
def fail(module, args):
    calls.append(1)
    if len(calls) == 4:
        raise ValueError("in a layer")
handle = model.model.layers[1].register_forward_pre_hook(fail)
ids = torch.randint(2, 128, (2, 11))
try:
    generate(model, ids, max_new_tokens=8, do_sample=False)
except ValueError as error:
    results.append(str(error))
handle.remove()
generate(model, ids, max_new_tokens=8, do_sample=False)
print(json.dumps({"counts": counts, "results": results}))
"""

THREADS = SETUP + """
models = [make("llama") for _ in range(3)]
shared, answers = make("llama"), {}
def work(number):
    generator = torch.randint(2, 128, (1, 5 + number), generator=torch.Generator().manual_seed(number))
    answers[number] = [m.generate(generator, max_new_tokens=10, do_sample=False).tolist() for m in (models[number], shared)]
threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
print(json.dumps({"results": [answers[number] for number in range(3)]}))
"""

# A cache that the caller brings, drafts by a second model, no cache, guidance, a pipeline.
OTHERS = SETUP + """
model, draft = make("llama"), make("llama")
ids = torch.randint(2, 128, (1, 12))
first = model.generate(ids, max_new_tokens=4, do_sample=False, return_dict_in_generate=True)
again = torch.cat([first.sequences, ids], 1)
results.append(model.generate(again, past_key_values=first.past_key_values, max_new_tokens=4, do_sample=False).tolist())
results.append(model.generate(ids, max_new_tokens=4, do_sample=False, use_cache=False).tolist())
results.append(model.generate(ids, max_new_tokens=4, do_sample=False, guidance_scale=1.5).tolist())
results.append(model.generate(ids, max_new_tokens=8, do_sample=False, assistant_model=draft).tolist())
print(json.dumps({"results": results}))
"""

# fullgraph: a mark inside of compiled code would be an error.
COMPILED = SETUP + """
model = make("llama")
ids = torch.randint(2, 128, (2, 8))
results.append(model.generate(ids, max_new_tokens=6, do_sample=False).tolist())
model.forward = torch.compile(model.forward, backend="eager", fullgraph=True)
results.append(model.generate(ids, max_new_tokens=6, do_sample=False).tolist())
del model.forward
call = torch.compile(model.__call__, backend="eager", fullgraph=True)
results.append(call(input_ids=ids).logits.argmax(-1).tolist())
print(json.dumps({"results": results}))
"""

# What PyTorch's profiler records: the steps with their sums.
PROFILED = SETUP + """
model = make("llama")
ids = torch.randint(2, 128, (3, 17))
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
    results.append(model.generate(ids, max_new_tokens=4, do_sample=False).tolist())
profiler.export_chrome_trace(sys.argv[1])
print(json.dumps({"results": results}))
"""

# The model's own work left out: nn.Module's call and an empty forward. The least of many, in turns.
COST = """
import json, time, torch, transformers
from transformers.generation.utils import GenerationMixin
class Empty(torch.nn.Module):
    def forward(self, **kwargs): return None
class Model(Empty, GenerationMixin): pass
bare, model = Empty(), Model()
step = dict(input_ids=torch.ones((4, 1), dtype=torch.long), past_key_values=1, use_cache=True, return_dict=True,
            attention_mask=None, position_ids=None, logits_to_keep=1)
def cost(one):
    start = time.process_time_ns()
    for _ in range(5000):
        one(**step)
    return (time.process_time_ns() - start) / 5000
def measure(self, inputs=None, generation_config=None, **kwargs):
    self(input_ids=torch.ones((4, 9)), past_key_values=1)
    self(**step)
    for _ in range(12):
        times["bare"].append(cost(bare))
        times["marked"].append(cost(self))
times = {"bare": [], "marked": []}
# What the wrapper of generate wraps is exchanged for the measurement.
wrapper = GenerationMixin.generate
is_marked = "marker" in wrapper.__code__.co_freevars
if is_marked:
    wrapper.__closure__[wrapper.__code__.co_freevars.index("original")].cell_contents = measure
    model.generate(None)
else:
    measure(model)
print(json.dumps({"is_marked": is_marked, **{name: min(values) for name, values in times.items()}}))
"""


class Transformers:
    def __init__(self, runner, python):
        self.runner, self.python = runner, python

    def script(self, text):
        path = self.runner.directory / "program.py"
        path.write_text(text)
        return [str(self.python), str(path)]

    def bare(self, text, *words):
        ran = subprocess.run([*self.script(text), *words], capture_output=True, text=True, timeout=300)
        assert ran.returncode == 0, ran
        return json.loads(ran.stdout)

    def marked(self, text, *words, passes="baseline", options=()):
        run = self.runner.run("--passes", passes, "--mark", "transformers", *options, command=[*self.script(text), *words],
                              timeout=400)
        assert run.bundle and run.step("baseline")["status"] == "done", run
        assert run.step("baseline")["steps"][0]["exit_code"] == 0, run
        log = (run.bundle / "baseline/log.txt").read_text()
        said = json.loads(next(line for line in log.splitlines() if line.startswith("{")))
        return run, said

    def notes(self, run):
        return [f["sentence"] for f in run.run_part()["contract"]["findings"] if f["reason"] == "marks_incomplete"]


def ranges_of(run):
    """Instances and tokens of each name; every range has ended."""
    sums = {}
    with (run.bundle / "baseline/ranges.csv").open() as file:
        for row in csv.DictReader(file):
            assert row["domain"] == "LLM" and row["end_ns"], row
            count, tokens = sums.get(row["name"], (0, 0))
            sums[row["name"]] = (count + 1, tokens + int(row["payload"] or 0))
    return sums


def compare(sums, counts):
    for name in ("prefill", "decode_step", "verify"):
        assert sums.get(name, (0, 0)) == tuple(counts[name]), (name, sums, counts)
    assert sums["request"][0] == counts["generate"], (sums, counts)


def check_models(test):
    for kind in ("llama", "qwen", "mixtral", "qwen_moe"):
        bare = test.bare(GENERATE, kind)
        run, said = test.marked(GENERATE, kind)
        assert said == bare, f"{kind}: marked and unmarked results differ"
        assert run.code == 0 and test.notes(run) == [], run
        sums = ranges_of(run)
        compare(sums, said["counts"])
        stages = {row["stage"]: row for row in run.json("baseline/metrics.json")["stages"]}
        for stage in ("prefill", "decode_step"):
            assert [stages[stage]["n"], stages[stage]["tokens"]] == said["counts"][stage], (stage, stages)
        print(f"  {kind}: {sums}")


def check_exception(test):
    bare = test.bare(FAILS)
    run, said = test.marked(FAILS)
    assert said == bare and said["results"][0] == "in a layer", said
    compare(ranges_of(run), said["counts"])


def check_threads(test):
    bare = test.bare(THREADS)
    run, said = test.marked(THREADS)
    assert said == bare
    sums = ranges_of(run)
    # Prompts of 5, 6 and 7 tokens, each twice.
    assert sums == {"request": (6, 0), "prefill": (6, 36), "decode_all": (6, 0), "decode_step": (54, 54)}, sums


def check_others(test):
    """What cannot be marked truly is left out, and told."""
    bare = test.bare(OTHERS)
    run, said = test.marked(OTHERS)
    assert said == bare
    sums, notes = ranges_of(run), test.notes(run)
    # A prefill each but with guidance; that of a cache has no tokens.
    assert sums["request"][0] == 5 and sums["prefill"][0] == 4, sums
    assert sums["verify"][0] >= 1 and sums["verify"][1] > sums["verify"][0], sums
    assert len(notes) == 2 and any("without a cache" in note for note in notes), notes
    assert any("guidance_scale" in note for note in notes), notes


def check_compiled(test):
    bare = test.bare(COMPILED)
    run, said = test.marked(COMPILED)
    assert said == bare and said["results"][0] == said["results"][1]
    assert ranges_of(run) == {"request": (2, 0), "prefill": (2, 32), "decode_all": (2, 0), "decode_step": (10, 20)}, ranges_of(run)


def check_profiler(test):
    trace = test.runner.directory / "trace.json"
    test.marked(PROFILED, str(trace))
    texts = re.findall(r'"(transformers\.[^"]+)"', trace.read_text())
    expected = ["transformers.prefill[bs=3 toks=51 c_sk=51 c_sqsq=867 c_sqsk=867]"] + [
        f"transformers.decode_step[bs=3 toks=3 g_sk={3 * k} g_sqsq=3 g_sqsk={3 * k}]" for k in (18, 19, 20)]
    assert sorted(set(texts)) == sorted(expected), texts
    printed = subprocess.run([test.runner.program, "table", "ranges", trace, "--json"], capture_output=True, text=True)
    assert printed.returncode == 0 and "transformers.prefill" in printed.stdout, printed


def check_cost(test):
    bare = test.bare(COST)
    run, said = test.marked(COST)
    assert said["is_marked"] and not bare["is_marked"], (bare, said)
    added = (said["marked"] - said["bare"]) / 1e3
    print(f"  a marked step: {added:+.2f} us of CPU time, of a call that takes {said['bare'] / 1e3:.2f} us; load {os.getloadavg()[0]:.1f}")
    assert ranges_of(run)["decode_step"][0] == 60001, ranges_of(run)
    assert 0 < added < MOST_STEP_US, added


def check_nsys(test):
    """The same stages and tokens from a recording of nsys."""
    if not shutil.which("nsys"):
        print("  left out: nsys is not installed")
        return
    run, said = test.marked(GENERATE, "llama", passes="baseline,nsys",
                            options=("pipeline.nsys.sample=none", "pipeline.nsys.cpuctxsw=none", "run.gate=none"))
    assert run.code == 0, run
    stages = {row["stage"]: row for row in run.json("metrics.json")["stages"]}
    for stage in ("prefill", "decode_step", "verify"):
        assert [stages[stage]["instances"], stages[stage]["tokens"]] == said["counts"][stage], (stage, stages[stage])


def main():
    arguments = testing.arguments("program", "workload", only=None)
    prefix = pathlib.Path(os.environ.get("GPUWHY_TORCH_PREFIX") or pathlib.Path.home() / ".cache/gpuwhy/torch")
    if not (prefix / "installed").exists():
        testing.skip("PyTorch and transformers are not installed (tools/install-deps.sh torch)")
    runner = Runner(arguments.program, arguments.workload)
    test = Transformers(runner, prefix / "bin/python")
    try:
        for name, check in sorted(globals().items()):
            if name.startswith("check_") and (not arguments.only or arguments.only in name):
                start = time.time()
                check(test)
                print(f"{name[6:]}: {time.time() - start:.1f} s", flush=True)
    finally:
        runner.close()
    return 0


if __name__ == "__main__":
    guarded(main)
