#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real vLLM server on the CPU under `gpuwhy attach` and `gpuwhy run --server`: its own profiler, its own step marks.

The model is a Llama of random weights. Tokens of the marked steps must be what the client sent and got, and the parts of each
request's time to first token must sum to what the client measured. vLLM for the CPU knows PyTorch's profiler only, so nothing here
shows a GPU, nor steps under Nsight Systems."""
import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

from llama_server import PARTS, SLACK_NS, SLACK_SHARE
from runs import Run, processes_of
from serve import free_port

NUM_REQUESTS, STREAMS, PROMPT, OUTPUT = 16, 4, 120, 12
MODEL = """
import sys
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, PreTrainedTokenizerFast
words = ["<unk>", "<s>", "</s>"] + [f"w{i}" for i in range(1021)]
tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>").save_pretrained(sys.argv[1])
LlamaConfig(vocab_size=1024, hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=1024, architectures=["LlamaForCausalLM"], dtype="float32", bos_token_id=1,
            eos_token_id=2).save_pretrained(sys.argv[1])
"""


def server_command(prefix, model, port):
    return [str(prefix / "bin/vllm"), "serve", str(model), "--load-format", "dummy", "--enforce-eager", "--port", str(port),
            "--max-model-len", "512", "--dtype", "float32"]


def load(program):
    return shlex.join([program, "load", "{url}", "--streams", str(STREAMS), "--requests", str(NUM_REQUESTS), "--prompt-tokens",
                       str(PROMPT), "--output-tokens", str(OUTPUT), "-o", "{requests}"])


def wait_until_ready(server, port):
    for _ in range(600):
        assert server.poll() is None, "the server ended"
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.5)
    raise AssertionError("the server is not ready")


def check_metrics(metrics, requests_file):
    rows = [json.loads(line) for line in requests_file.read_text().splitlines()]
    assert len(rows) == NUM_REQUESTS, rows
    tokens = {stage["stage"]: stage["tokens"] for stage in metrics["stages"] if stage["tokens"]}
    # vLLM sends several tokens at once where its front end lags.
    generated = sum(row["output_tokens"] for row in rows)
    assert generated == NUM_REQUESTS * OUTPUT, generated
    # Each prompt token is read once, and each token that came back but a request's first is of a step.
    assert sum(tokens.values()) == NUM_REQUESTS * PROMPT + generated - NUM_REQUESTS, tokens
    assert metrics["capture"]["stage_source"] == "step markers of vLLM", metrics["capture"]
    summary = metrics["requests"]
    assert summary["requests"] == NUM_REQUESTS, summary
    sent = {row["id"]: row for row in rows}
    told = [row for row in summary["rows"] if row["told"] == "inferred"]
    for row in told:
        measured = sent[row["id"]]["first_token_ns"] - sent[row["id"]]["sent_ns"]
        parts = sum(row[name] or 0 for name in PARTS)
        assert abs(parts - measured) <= SLACK_NS + SLACK_SHARE * measured, (row, measured)
    print(f"attach: {sum(tokens.values())} tokens in steps, as sent and received; {len(told)} of {len(summary['rows'])} listed requests "
          f"broken down; {summary['clock']['sentence']}")
    assert told, summary


def check_attach(arguments, prefix, model, directory, environment):
    port = free_port()
    traces, out = directory / "traces", directory / "report"
    traces.mkdir()
    command = server_command(prefix, model, port) + [
        "--profiler-config.profiler", "torch", "--profiler-config.torch_profiler_dir", str(traces),
        "--profiler-config.torch_profiler_with_stack", "false", "--profiler-config.detailed_trace_annotation", "true"]
    with open(directory / "server.txt", "w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)
    try:
        wait_until_ready(server, port)
        url = f"http://127.0.0.1:{port}"
        subprocess.run([arguments.program, "load", url, "--requests", "4", "--output-tokens", "4", "--quiet"], check=True,
                       stdout=subprocess.DEVNULL, timeout=120)
        result = subprocess.run([arguments.program, "attach", url, "--traces", str(traces), "--client", load(arguments.program), "-o",
                                 str(out)], capture_output=True, text=True, timeout=300)
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(60)
    assert result.returncode == 0, result
    # The front end's own trace is not a rank.
    assert "async_llm" in result.stdout + result.stderr, result.stdout
    check_metrics(json.loads((out / "metrics.json").read_text()), out / "requests.jsonl")


def check_run(arguments, prefix, model, directory, environment):
    """The unprofiled pass. The preset's profiler is for a GPU: vLLM refuses it here, so it is left out."""
    port = free_port()
    result = subprocess.run(
        [arguments.program, "run", "--progress", "plain", "--passes", "baseline", "-o", str(directory / "runs"), "--server",
         shlex.join(server_command(prefix, model, port)), "--client", load(arguments.program), "workload.server.arguments=[]"],
        capture_output=True, text=True, timeout=300, env=environment)
    run = Run(result.returncode, result.stdout, result.stderr)
    assert run.code == 0, run
    assert not processes_of(run.bundle), processes_of(run.bundle)
    rows = (run.bundle / "baseline/requests.jsonl").read_text().splitlines()
    assert len(rows) == NUM_REQUESTS and all(json.loads(row)["output_tokens"] == OUTPUT for row in rows), rows
    print(f"run: {len(rows)} requests")


def main():
    arguments = testing.arguments("program")
    prefix = pathlib.Path(os.environ.get("GPUWHY_VLLM_PREFIX") or pathlib.Path.home() / ".cache/gpuwhy/vllm")
    if not (prefix / "installed").exists():
        testing.skip("vLLM is not installed (tools/install-deps.sh vllm)")
    environment = dict(os.environ, HF_HUB_OFFLINE="1", VLLM_NO_USAGE_STATS="1", VLLM_CPU_KVCACHE_SPACE="1", OMP_NUM_THREADS="1",
                       VLLM_CPU_OMP_THREADS_BIND="nobind")
    with testing.scratch() as directory:
        model = directory / "model"
        subprocess.run([str(prefix / "bin/python"), "-c", MODEL, str(model)], check=True, env=environment, timeout=120,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        check_attach(arguments, prefix, model, directory, environment)
        check_run(arguments, prefix, model, directory, environment)


if __name__ == "__main__":
    main()
