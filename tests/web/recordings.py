#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pages of real recordings: small and large, one GPU and two, with stages and without."""
import pathlib
import sys
import tempfile

import browser

CAPTURES = {"nccl-2gpu": "v2026.2.1_nsysai_mfu_h100x2_nccl_before.sqlite", "lm-nvtx": "v2024.6.2_cs336_lm2.7B_a100_nvtx.sqlite",
            "old-two-streams": "exp2022.4.2_abacus_report1.sqlite", "graph": "v2024.6.2_cs336_lm2.7B_a100_cudagraph.sqlite"}


def main():
    asked = browser.arguments()
    browser.needed()
    corpus = pathlib.Path(asked.corpus) / "nsys_sqlite"
    if not corpus.is_dir():
        print("skipped: needs the recordings of GPUWHY_SHARED")
        return 77
    with tempfile.TemporaryDirectory() as directory:
        folder = pathlib.Path(directory)
        pages = [browser.page(asked.program, corpus / file, folder, name, bare=name == "nccl-2gpu")
                 for name, file in CAPTURES.items()]
        root = pathlib.Path(asked.corpus)
        counters = sorted((root / "ncu_csv/dsocr_rtx5090").glob("*.metrics.csv"))
        pages.append(browser.page(asked.program, root / "nsys_csv/dsocr_rtx5090/all-stage_cuda_gpu_kern_sum.csv", folder,
                                  "summary-counters", extra=["--ncu", *map(str, counters), "--gpu-name", "RTX-5090"],
                                  leastNumbers=5, roofline=True, roofs=True))
        # Its operators all ran while the graph was captured, before the first view.
        pages.append(browser.page(asked.program, root / "kineto/tracelens_vllm_decode_fullgraph.json.gz", folder, "vllm-replay"))
        browser.check(pages, folder, asked.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
