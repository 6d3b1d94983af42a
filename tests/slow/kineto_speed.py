#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reading traces of PyTorch's profiler beside simdjson stepping over the same text and keeping nothing, on one core.

Measured is the whole of `gpuwhy table kernels`, so reading alone is faster still. The budget has slack for a busy machine;
bench/README.md has the figures of a quiet one.
"""
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

BUDGET = 2.5  # times the bare parser
BYTES_PER_S = 250e6
STEPS = 30_000


def write_trace(path):
    """As the profiler writes them: operators with shapes, calls, arrows, kernels, python frames."""
    shapes = {"External id": 1, "Record function id": 0, "Concrete Inputs": ["", "", "", "1", "1"],
              "Input type": ["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "Scalar", "Scalar"],
              "Input Strides": [[4096, 1], [1, 4096], [1], [], []],
              "Input Dims": [[512, 4096], [4096, 4096], [4096], [], []], "Ev Idx": 7}
    gpu = {"External id": 1, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": 0,
           "registers per thread": 168, "shared memory": 49152, "blocks per SM": 1.939394, "warps per SM": 7.757576,
           "grid": [16, 16, 1], "block": [128, 1, 1], "est. achieved occupancy %": 12}
    name = "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x128_32x4_tn_align8>(Params)"

    def events_of(step):
        start = 1428625746133.051 + 50 * step

        def event(category, title, at, length, pid=9, tid=9, arguments=None):
            return {"ph": "X", "cat": category, "name": title, "pid": pid, "tid": tid, "ts": round(start + at, 3),
                    "dur": length, "args": arguments or {"External id": step}}

        kernel = dict(gpu, correlation=step)
        return [
            event("python_function", f"transformers/models/qwen2/modeling_qwen2.py({step % 900}): forward", 0, 49.5,
                  arguments={"Python parent id": step, "Python id": step + 1, "Ev Idx": step}),
            event("python_function", "torch/nn/modules/linear.py(124): forward", 0.5, 40.25,
                  arguments={"Python parent id": step, "Python id": step + 1, "Ev Idx": step}),
            event("cpu_op", "aten::linear", 1, 40.125, arguments=shapes),
            event("cpu_op", "aten::addmm", 2, 30.5, arguments=shapes),
            event("cuda_runtime", "cudaLaunchKernel", 10, 5.041, arguments={"External id": step, "cbid": 211, "correlation": step}),
            {"ph": "s", "id": step, "pid": 9, "tid": 9, "ts": round(start + 10, 3), "cat": "ac2g", "name": "ac2g"},
            event("kernel", name, 20, 24.064, 0, 7, kernel),
            {"ph": "f", "id": step, "pid": 0, "tid": 7, "ts": round(start + 20, 3), "cat": "ac2g", "name": "ac2g", "bp": "e"}]
    # One after the other: a child's peak memory is never told below that of this process.
    with open(path, "w") as file:
        file.write('{"schemaVersion": 1, "deviceProperties": [], "traceEvents": [')
        for step in range(STEPS):
            file.write(("," if step else "") + json.dumps(events_of(step), indent=2)[1:-1])
        file.write('], "traceName": "made"}')


def peak_bytes(command):
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    assert status == 0, command
    return usage.ru_maxrss * 1024


def best(function, rounds=5):
    return min(function() for _ in range(rounds))


def main():
    arguments = testing.arguments("program", "corpus")
    tools = pathlib.Path(arguments.program).parent
    testing.needs_release(arguments.program)
    with tempfile.TemporaryDirectory() as directory:
        made = pathlib.Path(directory) / "made.json"
        write_trace(made)
        traces = [made]
        for name in ("hta_df_index_resolver", "tracelens_vllm_decode_full_capture.pt.trace"):
            packed = arguments.corpus / "kineto" / f"{name}.json.gz"
            if packed.exists():
                traces.append(pathlib.Path(directory) / f"{name}.json")
                with gzip.open(packed) as source, open(traces[-1], "wb") as target:
                    shutil.copyfileobj(source, target)
        slowest = {}
        for trace in traces:
            def bare():
                return float(subprocess.run([tools / "gpuwhy_bare_json", trace], check=True, capture_output=True,
                                            text=True).stdout.split()[0])

            def whole():
                start = time.perf_counter()
                subprocess.run([arguments.program, "table", "kernels", trace, "--threads", "1"], check=True,
                               stdout=subprocess.DEVNULL)
                return time.perf_counter() - start

            size = trace.stat().st_size
            bare_s, whole_s = best(bare), best(whole)
            held = peak_bytes([arguments.program, "table", "kernels", trace])
            slowest[trace.name] = (whole_s / bare_s, size / whole_s, held, size)
            print(f"{trace.name}: {size / 1e6:.0f} MB, bare {size / bare_s / 1e6:.0f} MB/s, "
                  f"gpuwhy table kernels {size / whole_s / 1e6:.0f} MB/s, {whole_s / bare_s:.2f} x, "
                  f"memory {held / 1e6:.0f} MB")
    for name, (ratio, rate, held, size) in slowest.items():
        assert ratio < BUDGET and rate > BYTES_PER_S, (name, ratio, rate)
        assert held < 32e6 + size / 10, (name, held)
    return 0


if __name__ == "__main__":
    sys.exit(main())
