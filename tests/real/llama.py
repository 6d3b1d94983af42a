#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real LLM through gpuwhy run: llama.cpp under the real nsys, by the name of its target alone.

The bundle is compared with what llama_runner measures itself, with the header of the model's file, read here
again, and against what gpuwhy model says of it."""
import csv
import hashlib
import json
import math
import os
import pathlib
import shutil
import sqlite3
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

from runs import Runner, guarded, has_report

# Two means of the same ranges by two clocks in one process: what lies between them is the clocks' own reading.
MOST_DIFFERENCE = 0.05
# Of the time of passes, what operators must name. Where more wants to run than there are processors, a step of two milliseconds
# loses some of it between operators.
LEAST_ATTRIBUTED = 0.95 if os.getloadavg()[0] < os.cpu_count() - 0.5 else 0.9


def gguf_params(path):
    """Elements of all tensors in the directory of a GGUF, by a reader of our own."""
    sizes = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
    with open(path, "rb") as file:
        def take(form):
            return struct.unpack("<" + form, file.read(struct.calcsize("<" + form)))[0]

        def skip(kind):
            if kind == 8:
                file.seek(take("Q"), 1)
            elif kind == 9:
                of, count = take("I"), take("Q")
                for _ in range(count):
                    skip(of)
            else:
                file.seek(sizes[kind], 1)

        assert file.read(4) == b"GGUF" and take("I") == 3
        tensors, keys = take("Q"), take("Q")
        for _ in range(keys):
            file.seek(take("Q"), 1)
            skip(take("I"))
        total = 0
        for _ in range(tensors):
            file.seek(take("Q"), 1)
            total += math.prod(take("Q") for _ in range(take("I")))
            file.seek(12, 1)
        return total


def operators_of(run):
    """Share of the passes' time that has a name, by stage, and the sum of every layer."""
    rows = list(csv.DictReader((run.bundle / "baseline/operators.csv").open()))
    stages = {row["stage"]: row for row in rows if row["kind"] == "stage"}
    shares, layers = {}, {}
    for stage, whole in stages.items():
        named = [row for row in rows if row["kind"] == "operator" and row["stage"] == stage]
        shares[stage] = sum(int(row["total_ns"]) for row in named) / int(whole["total_ns"])
        for row in named:
            assert row["op"] and int(row["calls"]) % int(whole["calls"]) == 0, row
            layers[row["layer"]] = layers.get(row["layer"], 0) + int(row["total_ns"])
    return rows, shares, layers


class Llama:
    def __init__(self, runner, models, llama_runner):
        self.runner, self.models, self.llama_runner = runner, models, llama_runner

    def run(self, target, *words):
        """By name alone; only the place of the model's file is ours."""
        argv = [self.runner.program, "run", "--progress", "plain", f"artifacts.dir={self.runner.directory}",
                f"model.target={target}", f"model.config={self.models}/{target}.gguf", *words]
        return self.runner.checked(argv, PATH=f"{self.llama_runner.parent}:{os.environ['PATH']}")

    def check_timers(self, run):
        """TTFT and TPOT of the pass without a profiler are those the program measured in the same pass."""
        stages = {row["stage"]: row for row in run.json("baseline/metrics.json")["stages"]}
        own = run.json("baseline/workload.json")
        for stage, timer in (("prefill", "ttft_ns"), ("decode_step", "tpot_ns")):
            mine, its = stages[stage]["mean_ns"], own["aggregates"][timer]["mean"]
            assert stages[stage]["n"] == own["aggregates"][timer]["n"], "a warm-up was counted as a stage"
            assert abs(mine / its - 1) < MOST_DIFFERENCE, (stage, mine, its)
            print(f"  {timer[:4]}: gpuwhy {mine / 1e6:.3f} ms, the program {its / 1e6:.3f} ms ({mine / its - 1:+.3%})")
        assert stages["prefill"]["tokens"] == own["batch"] * own["prompt_tokens"] * len(own["requests"])
        assert stages["decode_step"]["tokens"] == own["batch"] * (own["new_tokens"] - 1) * len(own["requests"])
        hashes = {run.json(f"{folder}/workload.json")["output_hash"] for folder in ("baseline", "operators", "nsys")}
        assert len(hashes) == 1, "the passes did not compute the same"

    def check_model(self, run, target):
        path = self.models / f"{target}.gguf"
        params = gguf_params(path)
        inputs = run.run_part()["model"]
        listed = {row["model"]: row for row in json.loads(subprocess.run(
            [self.runner.program, "list", "models", "--json"], capture_output=True, check=True).stdout)["rows"]}
        assert inputs["target"] == target and inputs["params"] == params == listed[target]["params"], (inputs, params)
        assert run.json("baseline/workload.json")["model"]["params"] == params
        assert inputs["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        assert inputs["sha256"] in (run.bundle / "inputs.yaml").read_text()

    def check_efficiency(self, run, target):
        """FLOPs and bytes without a GPU, from the file itself, as gpuwhy model says."""
        efficiency = run.json("metrics.json")["efficiency"]
        assert efficiency["reason"] == "no_gpu" and efficiency["gpu"] is None, efficiency
        own = run.json("baseline/workload.json")
        prefill = {row["stage"]: row for row in efficiency["stages"]}["prefill"]
        said = json.loads(subprocess.run(
            [self.runner.program, "model", self.models / f"{target}.gguf", "--json", "--prefill",
             str(own["prompt_tokens"])], capture_output=True, check=True).stdout)
        assert prefill["flops"] == len(own["requests"]) * own["batch"] * said["prefill"]["flops"], (prefill, said)
        for row in efficiency["stages"]:
            assert row["flops"] > 0 and row["bytes"] > 0 and row["mfu"]["wall_fraction"] is None, row
        return {row["stage"]: row for row in efficiency["stages"]}

    def check_operators(self, run, num_layers):
        rows, shares, layers = operators_of(run)
        assert set(shares) == {"prefill", "decode_step"} and min(shares.values()) >= LEAST_ATTRIBUTED, shares
        assert {layer for layer in layers if layer} == {str(i) for i in range(num_layers)}, layers
        document = run.json("metrics.json").get("operators")
        if document:  # the same, of all stages together, as reports show it
            assert document["covered_ns"] == sum(layers.values()), document
        print("  operators: " + ", ".join(f"{share:.1%} of {stage}" for stage, share in sorted(shares.items())))
        return rows

    def check_target(self, target, num_layers):
        run = self.run(target)
        assert run.code == 0, run
        for name in ("manifest.json", "env.json", "config.yaml", "inputs.yaml", "metrics.json", "kernels.md",
                     "baseline/metrics.json", "baseline/ranges.csv", "baseline/workload.json", "baseline/operators.csv",
                     "nsys/run.sqlite", "nsys/workload.json"):
            assert (run.bundle / name).stat().st_size > 0, name
        assert has_report(run), run
        assert [p["pass"] for p in run.run_part()["passes"]] == ["prepare", "baseline", "operators", "nsys", "ncu"]
        assert run.step("ncu")["reason"] == "no_gpu"
        assert subprocess.run([self.runner.program, "view", "--verify", run.bundle],
                              capture_output=True).returncode == 0
        self.check_timers(run)
        self.check_model(run, target)
        stages = self.check_efficiency(run, target)
        rows = self.check_operators(run, num_layers)
        # nsys' stages beside them: the same instances, the tokens with them.
        profiled = {row["stage"]: row for row in run.json("metrics.json")["stages"]}
        baseline = {row["stage"]: row for row in run.json("baseline/metrics.json")["stages"]}
        for stage in ("prefill", "decode", "decode_step"):
            assert profiled[stage]["instances"] == baseline[stage]["n"], stage
            assert profiled[stage]["tokens"] == baseline[stage]["tokens"], stage
        again = self.run(target, "--passes", "baseline")
        assert again.code == 0 and [p["pass"] for p in again.run_part()["passes"]] == ["baseline"], "made a second time"
        return run, stages, rows


def check_llama_100m(llama):
    run, stages, rows = llama.check_target("llama_100m", 12)
    # Products with weights: what the operators' shapes say is what the model's shape says.
    products = sum(int(row["flops"]) for row in rows
                   if row["stage"] == "decode_step" and row["op"] == "MUL_MAT" and row["weights"])
    model = json.loads(subprocess.run(
        [llama.runner.program, "model", llama.models / "llama_100m.gguf", "--json"], capture_output=True, check=True).stdout)
    steps = stages["decode_step"]["passes"]
    expected = steps * sum(model["decode"]["flops_by_part"][part] for part in ("qkv", "o", "mlp", "lm_head"))
    assert products == expected, (products, expected)
    with sqlite3.connect(run.bundle / "nsys/run.sqlite") as database:
        texts = {row[0] for row in database.execute(
            "SELECT DISTINCT coalesce(n.text, s.value) FROM NVTX_EVENTS n LEFT JOIN StringIds s ON s.id = n.textId")}
    assert "warmup" not in texts, "the gate opened before the first request"
    analyzed = subprocess.run([llama.runner.program, "analyze", run.bundle], capture_output=True, text=True)
    assert analyzed.returncode == 0, analyzed


def check_moe(llama):
    run, _, rows = llama.check_target("moe_tiny", 4)
    assert run.json("baseline/workload.json")["batch"] == 2
    assert any(row["op"] == "MUL_MAT_ID" and row["name"] == "ffn_up_exps" for row in rows)


def check_mla(llama):
    _, _, rows = llama.check_target("mla_tiny", 4)
    names = {row["name"] for row in rows}
    assert {"attn_q_a", "attn_kv_a_mqa", "attn_k_b", "ffn_up_shexp", "ffn_up_exps"} <= names, names


def check_models(llama):
    """Every model llama_runner makes is what its directory of tensors says, the same each time, with either tokenizer."""
    folder = llama.runner.directory / "made"
    presets = ["llama_tiny", "llama_100m", "llama_100m_f16", "moe_tiny", "qwen3moe_tiny", "mla_tiny"]
    for preset in presets:
        path = folder / f"{preset}.gguf"
        said = subprocess.run([llama.llama_runner, "--make-model", preset, path], capture_output=True, text=True, check=True)
        costs = json.loads(subprocess.run([llama.runner.program, "model", path, "--json"], capture_output=True,
                                          check=True).stdout)
        params = gguf_params(path)
        assert costs["params"]["total"] == params and f" {params} parameters" in said.stdout, (preset, params, said)
        assert not costs["model"]["notes"], (preset, costs["model"]["notes"])
    short = ["--new-tokens", "2", "--requests", "1", "--warmup", "0"]
    for preset in ("llama_tiny", "moe_tiny"):
        for tokenizer, code in (("spm", 0), ("none", 1)):
            path = folder / f"{tokenizer}.gguf"
            subprocess.run([llama.llama_runner, "--make-model", preset, path, "--tokenizer", tokenizer], check=True,
                           stdout=subprocess.DEVNULL)
            ran = subprocess.run([llama.llama_runner, "--model", path, "--prompt", "Hello there", *short],
                                 capture_output=True, text=True)
            assert ran.returncode == code, (preset, tokenizer, ran)
    subprocess.run([llama.llama_runner, "--make-model", "llama_tiny", folder / "again.gguf"], check=True,
                   stdout=subprocess.DEVNULL)
    assert (folder / "again.gguf").read_bytes() == (folder / "llama_tiny.gguf").read_bytes()
    wrong = subprocess.run([llama.llama_runner, "--make-model", "nosuch", folder / "x.gguf"], capture_output=True, text=True)
    assert wrong.returncode == 1 and all(preset in wrong.stderr for preset in presets), wrong
    assert not (folder / "x.gguf").exists() and not list(folder.glob("*.part"))


def check_gates(llama):
    """A recording that opens with the first decode loop: nsys blocks for long when it opens and when it closes, and
    neither is in what is said of stages."""
    model = llama.models / "llama_tiny.gguf"
    subprocess.run([llama.llama_runner, "--make-model", "llama_tiny", model], check=True, stdout=subprocess.DEVNULL)
    for marks in ([], ["--unregistered"]):
        run = llama.runner.run("--passes", "baseline,nsys", "run.gate=LLM:decode_all", command=[
            str(llama.llama_runner), "--model", str(model), "--requests", "5", "--new-tokens", "64", *marks])
        assert run.code == 0, run
        metrics = run.json("metrics.json")
        stages = {row["stage"]: row for row in metrics["stages"]}
        baseline = {row["stage"]: row for row in metrics["baseline"]}
        assert stages["decode"]["instances"] == 5 and stages["prefill"]["instances"] == 4, stages
        assert stages["decode_step"]["instances"] == baseline["decode_step"]["n"] == 5 * 63
        overhead = {row["stage"]: row for row in metrics["overhead"]}
        # Of the four loops after the first, which nsys stretches: a block of a second in one of them would show.
        added_ns = overhead["decode"]["profiled_mean_ns"] - overhead["decode"]["baseline_mean_ns"]
        # A machine that was busier then makes all steps longer: their median tells how much.
        slower = max(1, stages["decode_step"]["host_median_ns"] / baseline["decode_step"]["p50_ns"])
        most_ns = 0.2e9 + 1.5 * (slower - 1) * overhead["decode"]["baseline_mean_ns"]
        assert added_ns < most_ns and stages["decode_step"]["host_max_ns"] < 0.8e9 * slower, (added_ns, slower, stages)
        for stage in ("decode", "decode_step"):
            longer = overhead[stage]["profiled_mean_ns"] / overhead[stage]["baseline_mean_ns"] - 1
            print(f"  {' '.join(marks) or '--registered'} {stage}: {longer:+.1%} under nsys,"
                  f" first {stages[stage]['host_first_ns'] / 1e6:.2f} ms,"
                  f" others {stages[stage]['host_steady_mean_ns'] / 1e6:.2f} ms")


def check_dry(llama):
    """deepseek_ocr needs a GPU and vLLM; what would be started is known without."""
    tools = llama.runner.directory / "bin"
    tools.mkdir()
    (tools / "vllm").write_text("#!/bin/sh\nexit 1\n")
    (tools / "vllm").chmod(0o755)
    result = subprocess.run([llama.runner.program, "run", "--dry-run", "model.target=deepseek_ocr"], capture_output=True,
                            text=True, env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"})
    lines = result.stdout.splitlines()
    assert result.returncode == 0 and lines[::2] == ["# baseline", "# nsys", "# ncu"], result
    for folder, line in zip(("baseline", "nsys", "ncu"), lines[1::2]):
        assert "bench latency --model deepseek-ai/DeepSeek-OCR" in line and f"BUNDLE/{folder}/workload.json" in line, line
        assert "VLLM_WORKER_MULTIPROC_METHOD=spawn" in line, "not recognised as vLLM"
    away = subprocess.run([llama.runner.program, "run", "--dry-run", "model.target=deepseek_ocr"], capture_output=True,
                          text=True)
    assert shutil.which("vllm") or (away.returncode == 2 and "'vllm'" in away.stderr), away


def check_failures(llama):
    """A model that cannot be made or loaded ends the run, with its reason, before the other passes."""
    tiny = [f"model.config={llama.runner.directory}/none.gguf", "model.target=llama_tiny"]
    unmade = llama.run("llama_tiny", *tiny, "model.workload.prepare=[/bin/true]")
    assert unmade.code == 7 and "left no" in unmade.findings()["workload_failed"]["sentence"], unmade
    assert unmade.step("baseline")["reason"] == "prepare_failed" and unmade.step("nsys")["status"] == "skipped"
    damaged = llama.runner.directory / "damaged.gguf"
    damaged.write_bytes(b"GGUF" + b"\xff" * 100)
    broken = llama.run("llama_tiny", f"model.config={damaged}")
    assert broken.code == 7 and broken.findings()["pass_failed"]["pass"] == "prepare", broken
    silent = llama.run("llama_tiny", "model.workload.operators=[--threads, '1']", "--passes", "baseline,operators")
    assert silent.code == 7 and "no table" in silent.findings()["report_missing"]["sentence"], silent


def main():
    arguments = testing.arguments("program", "workload", only=None)
    if not arguments.llama_runner:
        testing.skip("llama_runner is not built (tools/install-deps.sh workload)")
    if not shutil.which("nsys") or not shutil.which("ncu"):
        testing.skip("nsys and ncu are not installed (tools/install-deps.sh nsight)")
    runner = Runner(arguments.program, arguments.workload)
    models = runner.directory / "models with a blank"
    llama = Llama(runner, models, arguments.llama_runner)
    try:
        for name, check in sorted(globals().items()):
            if name.startswith("check_") and (not arguments.only or arguments.only in name):
                start = time.time()
                check(llama)
                print(f"{name[6:]}: {time.time() - start:.1f} s")
    finally:
        runner.close()
    return 0


if __name__ == "__main__":
    guarded(main)
