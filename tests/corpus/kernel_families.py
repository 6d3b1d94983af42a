#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Families of kernels: names of engines against an answer key beside the corpus, and the kernels of its recordings of
language models, by time, against what their sources say they do."""
import csv
import io
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

# Name -> the families that are right. Words of the rules find most of these only by order or by their place in a name.
EXPECTED = [
    (r"_matmul_ogs|_finalize_matmul_scatter|^bmm_.*dynBatch|m_grouped", "moe"),
    (r"expand_to_fused|get_fused_mapping|_combined_routing|_sum_bitmatrix|_topk_forward|topk_sum_and_topk", "moe"),
    (r"gatherTopK|bitonicSortKV|DeviceRadixSort", "sort moe"),
    (r"DeviceScan", "reduction"),
    (r"grouped_gemm::cuda::fp8_ptp128c", "gemm"),
    (r"grouped_gemm::cuda::utils", "copy"),
    (r"fbgemm_gpu::(permute|_block_bucket|_offsets)", "embedding copy"),
    (r"fbgemm_gpu::.*(FP8|hfp8|fp8)", "quantise"),
    (r"linearize_index|bounds_check_indices|indexing_backward", "embedding"),
    (r"scalePackedTensor|convertTensor_kernel", "elementwise copy"),
    (r"swiglu_.*cast", "quantise activation"),
    (r"per_token_cast|cast_back|per_channel_cast_and_transpose", "quantise"),
    (r"fused__autocast_to|flip_filter|permutationKernelPLC3", "copy"),
    (r"SubTensorOp|fused_dropout|scal_kernel|upsample|^cupy_[^cf]|masked_fill", "elementwise"),
    (r"GammaBetaBackward|RowwiseMoments|triton_red_fused.*rsqrt", "norm"),
    (r"fft1d_|nvjet|^Cijk_|sgemm|_s?16816gemm", "gemm"),
    (r"create_flashinfer_kv_indices", "kv_cache"),
    (r"flash_fwd|fmha|paged_attention|unified_attention|^attn_fwd|FlashAttn", "attention"),
    (r"^nccl|multimem_all_reduce|::ep::", "communication"),
    (r"rms_norm|rmsnorm|RMSNorm|layer_norm", "norm"),
    (r"silu_kernel|GeluCUDA|act_and_mul", "activation"),
    (r"CatArrayBatchedCopy|direct_copy_kernel", "copy"),
]
MODELS = ("tracelens", "deepseek_v3_train", "all-stage", "decode_cuda", "prefill_cuda", "examples_cuda", "dsocr", "qwen",
          "llama", "vllm", "sglang")


def main():
    arguments = testing.arguments("program", "corpus")
    failures = 0
    is_read = False

    def families(path):
        """Name -> family, nanoseconds."""
        run = subprocess.run([arguments.program, "table", "kernels", path, "--format", "csv"],
                             capture_output=True, text=True, timeout=300)
        found = {}
        for row in csv.DictReader(io.StringIO(run.stdout)):
            family, total = found.get(row["kernel_name"], (row["family"], 0))
            found[row["kernel_name"]] = family, total + int(row["total_ns"])
        return found

    key = arguments.corpus / ".." / "reference" / "kernel_names_2026.tsv"
    if key.exists():
        is_read = True
        rows = [line.split("\t") for line in key.read_text().splitlines() if line and not line.startswith("#")]
        with tempfile.TemporaryDirectory() as folder:
            summary = pathlib.Path(folder) / "names_cuda_gpu_kern_sum.csv"
            with open(summary, "w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(["Time (%)", "Total Time (ns)", "Instances", "Avg (ns)", "Med (ns)", "Min (ns)", "Max (ns)",
                                 "StdDev (ns)", "Name"])
                writer.writerows([0, 1000, 1, 1000.0, 1000.0, 1000, 1000, 0.0, row[0]] for row in rows)
            found = families(summary)
        wrong = [row for row in rows if found.get(row[0], ("absent",))[0] != row[1].replace(" ", "_")]
        for row in wrong:
            print("WRONG:", row[0][:100], "is", row[1], "not", found.get(row[0], ("absent",))[0])
        print(f"{len(rows) - len(wrong)} of {len(rows)} names of engines")
        failures += len(wrong) > 4 or len(rows) < 129
    else:
        print(f"skipped: no names of engines at {key}")

    paths = [path for folder in ("kineto", "nsys_sqlite", "nsys_csv") for path in sorted((arguments.corpus / folder).rglob("*"))
             if path.is_file() and any(model in path.name.lower() for model in MODELS)
             and "flux" not in path.name  # makes images
             and (folder != "nsys_csv" or "kern_sum" in path.name or "gpukernsum" in path.name)]
    worst = 1.0
    num_read = 0
    for path in paths:
        found = families(path)
        total = sum(time for _, time in found.values())
        if not total:
            continue
        num_read += 1
        wrong = {}
        for name, (family, time) in found.items():
            expected = next((families for pattern, families in EXPECTED if re.search(pattern, name.split("(dpsk")[0])), None)
            if family == "other" or (expected and family not in expected.split()):
                wrong[name] = family, time
        right = 1 - sum(time for _, time in wrong.values()) / total
        worst = min(worst, right)
        if right < 0.99:
            failures += 1
            print(f"FAILED: {path.name}: {right:.2%} of the time right",
                  [(name[:80], family) for name, (family, _) in sorted(wrong.items(), key=lambda one: -one[1][1])][:5])
    if num_read:
        is_read = True
        print(f"{num_read} recordings of language models, at least {worst:.2%} of their time right")
        failures += num_read < 15
    else:
        print(f"skipped: no recordings at {arguments.corpus}")
    return bool(failures) if is_read else 77


sys.exit(main())
