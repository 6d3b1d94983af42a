#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes nsys exports shaped like those of serving engines, with what is true of them.

  make_engine_trace.py OUT.sqlite --depth 1 --workers 2 --after-marker      prints the truth as JSON

A worker thread marks each step, launches its kernels and goes on to the next step while the GPU still runs this one.
The workers of a replica mark the same steps, each on its own GPU, and meet in every all-reduce. In each process that
GPU is device 0, as under CUDA_VISIBLE_DEVICES. The same shapes as tests/unit/analysis/engine_trace.cc.

  make_engine_trace.py OUT.sqlite --workers 2 --rank 1      only what one rank records, with the clock of its own session
"""
import argparse
import json
import pathlib
import random
import shlex
import sqlite3

US = 1000
LAUNCH, LATENCY, GAP = 4 * US, 3 * US, US // 2  # of a call; from a call to its work; between kernels

# Kernels of a layer and their microseconds.
WHOLE_LAYER = [("fused_add_rms_norm_kernel", 4), ("nvjet_tst_64x64_qkv", 25), ("rotary_embedding_kernel", 5),
               ("reshape_and_cache_flash_kernel", 4), ("flash_fwd_splitkv_kernel", 40), ("nvjet_tst_64x32_o", 17),
               ("fused_add_rms_norm_kernel", 4), ("nvjet_tst_128x64_gate_up", 67), ("act_and_mul_kernel", 9),
               ("nvjet_tst_64x64_down", 41)]

# Columns by table: integers, unless their type is said.
TABLES = {
    "StringIds": "id, value TEXT",
    "CUPTI_ACTIVITY_KIND_KERNEL": "start, end, deviceId, contextId, streamId, correlationId, globalPid, demangledName, "
        "shortName, gridX, gridY, gridZ, blockX, blockY, blockZ, graphNodeId",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "start, end, deviceId, contextId, streamId, correlationId, globalPid, bytes, "
        "copyKind",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start, end, globalTid, correlationId, nameId",
    "NVTX_EVENTS": "start, end, eventType, text TEXT, globalTid, textId, domainId",
    "TARGET_INFO_GPU": "id, name TEXT, totalMemory, memoryBandwidth, clockRate, smCount, cuDevice",
    "TARGET_INFO_CUDA_DEVICE": "gpuId, cudaId, pid",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs",
}
UTC = 1_790_000_000_000_000_000  # at time 0 of the simulation


def parser_of_shapes():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--depth", type=int, default=1, help="steps that the host runs ahead; 0: it waits for each")
    parser.add_argument("--workers", type=int, default=1, help="processes of a replica (tensor parallel)")
    parser.add_argument("--replicas", type=int, default=1, help="each with batches of its own (data parallel)")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--warm-up", type=int, default=2, help="slow steps at first")
    parser.add_argument("--mixed-every", type=int, default=0, help="every n-th step holds a prompt too; 0: none")
    parser.add_argument("--prefill-every", type=int, default=0, help="every n-th step is a prompt alone; 0: none")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--whole-layers", action="store_true", help="ten kernels a layer, not two")
    parser.add_argument("--prepare-us", type=int, default=20, help="host time of a step before its first launch")
    parser.add_argument("--batch", type=int, default=16, help="sequences of a step, at least")
    parser.add_argument("--engine", choices=("vllm", "sglang"), default="vllm")
    parser.add_argument("--after-marker", action="store_true", help="launch logits and sampling when it has closed")
    parser.add_argument("--eager", action="store_true", help="launch each kernel; else a decode step is one graph")
    parser.add_argument("--startup", action="store_true", help="copies and fills before the first step")
    parser.add_argument("--tail", action="store_true", help="idle time after the last step")
    parser.add_argument("--rank", type=int, help="only the rows of this rank, counted over all replicas")
    parser.add_argument("--session-us", type=int, default=0, help="start of the recording's own clock")
    parser.add_argument("--clock-error-us", type=int, default=0, help="of the UTC time that it says it began")
    parser.add_argument("--no-utc", action="store_true", help="it does not say when it began")
    parser.add_argument("--jitter-us", type=int, default=0, help="most by which a launch is late, other for each worker")
    return parser


class Worker:
    def __init__(self, number, host):
        self.pid = 4000 + number
        self.global_pid = (1 << 56) | (self.pid << 24)
        self.thread = self.global_pid | self.pid
        self.gpu_id = number
        self.host, self.gpu = host, 0  # how far the host has come; when the GPU is free
        self.ends = []                 # of the GPU's work, by step
        self.correlation = 0
        self.marker = None


class Engine:
    def __init__(self, shape):
        self.shape = shape
        self.random = random.Random(1)
        self.rows = {table: [] for table in TABLES}
        self.strings = {}
        self.replicas = [self.replica(number) for number in range(shape.replicas)]
        self.rows["StringIds"] = [(number, text) for text, number in self.strings.items()]
        if not shape.no_utc:
            utc = UTC + (shape.session_us + shape.clock_error_us) * US
            self.rows["TARGET_INFO_SESSION_START_TIME"] = [(utc,)]
        if shape.rank is not None:
            self.keep_rank(4000 + shape.rank)

    def keep_rank(self, pid):
        """Leaves what a recording of this process alone has, on its own clock."""
        def is_kept(table, row):
            names = [column.split()[0] for column in TABLES[table].split(", ")]
            of = dict(zip(names, row))
            owner = of.get("globalPid", of.get("globalTid"))
            return of.get("pid", pid) == pid if owner is None else owner >> 24 & 0xffffff == pid

        def moved(table, row):
            is_timed = TABLES[table].startswith("start, end")
            return tuple(value - self.shape.session_us * US if is_timed and i < 2 else value
                         for i, value in enumerate(row))

        for table, rows in self.rows.items():
            self.rows[table] = [moved(table, row) for row in rows if is_kept(table, row)]

    def text(self, text):
        return self.strings.setdefault(text, len(self.strings) + 1)

    def call(self, worker, end, name):
        worker.correlation += 1
        self.rows["CUPTI_ACTIVITY_KIND_RUNTIME"].append((worker.host, end, worker.thread, worker.correlation,
                                                         self.text(name)))
        worker.host = end + US
        return worker.correlation

    def grid(self, name, queries, tokens):
        """Of whole layers: a norm has a block for each token, attention a row of blocks for 64 queries of a sequence."""
        if self.shape.whole_layers and "norm" in name:
            return tokens, 1, 1
        return (-(-queries // 64), 16, 8) if self.shape.whole_layers and "flash" in name else (64, 1, 1)

    def kernel(self, worker, start, end, name, correlation, node=None, queries=1, tokens=1):
        number = self.text(name)
        self.rows["CUPTI_ACTIVITY_KIND_KERNEL"].append((start, end, 0, 1, 7, correlation, worker.global_pid, number,
                                                        number, *self.grid(name, queries, tokens), 128, 1, 1, node))

    def copy(self, worker, start, end, correlation, kind):
        self.rows["CUPTI_ACTIVITY_KIND_MEMCPY"].append((start, end, 0, 1, 7, correlation, worker.global_pid, 4096,
                                                        kind))

    def replica(self, number):
        # Workers are not quite simultaneous, replicas not at all.
        workers = [Worker(number * self.shape.workers + i, (100 + i + 37 * number) * US)
                   for i in range(self.shape.workers)]
        for worker in workers:
            self.rows["TARGET_INFO_GPU"].append((worker.gpu_id, "NVIDIA H100 80GB HBM3", 85899345920, 3352320000000,
                                                 1980000000, 132, worker.gpu_id))
            self.rows["TARGET_INFO_CUDA_DEVICE"].append((worker.gpu_id, 0, worker.pid))
            if self.shape.startup:
                self.start_up(worker)
        steps = [self.step(number, i, workers) for i in range(self.shape.steps)]
        for step, following in zip(steps, steps[1:]):
            step["period_ns"] = following["gpu_start_ns"] - step["gpu_start_ns"]
        for worker in workers:
            if self.shape.tail:
                self.call(worker, max(worker.host, worker.gpu) + 900 * US, "cudaDeviceSynchronize_v3020")
        return {"pids": [worker.pid for worker in workers], "devices": [f"cuda:{worker.gpu_id}" for worker in workers],
                "steps": steps}

    def start_up(self, worker):
        """Weights are copied and filled in; no kernel of the model runs."""
        for _ in range(3):
            copy = self.call(worker, worker.host + LAUNCH, "cudaMemcpyAsync_v3020")
            worker.gpu = max(worker.gpu, worker.host) + LATENCY
            self.copy(worker, worker.gpu, worker.gpu + 80 * US, copy, 1)
            fill = self.call(worker, worker.host + LAUNCH, "cudaLaunchKernel_v7000")
            self.kernel(worker, worker.gpu + 80 * US + GAP, worker.gpu + 85 * US, "vectorized_elementwise_kernel", fill)
            worker.gpu += 85 * US
        self.call(worker, worker.gpu, "cudaDeviceSynchronize_v3020")
        worker.host = worker.gpu + 50 * US

    def plan(self, factor):
        """(name, duration, part) of the work of a step; a prompt makes it longer, and so does a first use."""
        layer = [("nvjet_tst_128x64", 30 * US * factor, "layer"),
                 ("flash_fwd_splitkv_kernel", 20 * US * factor, "layer")]
        if self.shape.whole_layers:
            layer = [(name, time * US * factor, "layer") for name, time in WHOLE_LAYER]
        if self.shape.workers > 1:
            layer.append(("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 6 * US * factor, "communication"))
        first = [("vectorized_gather_kernel", 4 * US, "layer")] if self.shape.whole_layers else []
        return first + layer * self.shape.layers + [
            ("nvjet_tst_256x128_lm_head", 25 * US, "sampling"), ("sampling_topk_topp_kernel", 5 * US, "sampling"),
            (None, 2 * US, "sampling")]

    def marker(self, prompt, batch):
        if not batch:
            return f"execute_context_1({prompt})_generation_0(0)" if self.shape.engine == "vllm" else f"step[EXTEND bs=1 toks={prompt}]"
        if self.shape.engine == "vllm":
            return f"execute_context_{1 if prompt else 0}({prompt})_generation_{batch}({batch})"
        if not prompt:
            return f"step[DECODE bs={batch} g_sq={batch}]"
        return (f"step[MIXED bs={batch + 1} c=1 g={batch} c_sq={prompt} c_sk={prompt} c_sqsq={prompt ** 2} "
                f"c_sqsk={prompt ** 2} g_sq={batch} g_sk={batch * 500} g_sqsq={batch} g_sqsk={batch * 500}]")

    def wait(self, worker, end, name):
        self.call(worker, max(worker.host, end) + US, name)
        worker.host += US

    def step(self, replica, number, workers):
        is_mixed = self.shape.mixed_every > 0 and number % self.shape.mixed_every == 1
        # Batches change as requests come and go, so that they distinguish replicas.
        batch = self.shape.batch + 8 * replica + number % 3
        is_prefill = self.shape.prefill_every > 0 and number % self.shape.prefill_every == self.shape.warm_up
        prompt = 256 + 64 * replica if is_mixed or is_prefill else 0
        batch = 0 if is_prefill else batch
        work = self.plan((6 if is_prefill else 3 if is_mixed else 1) * (4 if number < self.shape.warm_up else 1))
        has_graph = not self.shape.eager and not prompt  # prompts are of any length: no graph fits them
        launched = [self.launch(worker, work, number, has_graph) for worker in workers]
        gpus = self.run_on_gpus(workers, work, launched, has_graph, prompt or 1, prompt + batch)
        for worker, (_, end, _) in zip(workers, gpus):
            worker.ends.append(end)
            if self.shape.depth == 0:
                self.wait(worker, end, "cudaStreamSynchronize_v3020")
                if not self.shape.after_marker:
                    worker.marker = worker.marker[0], worker.host  # the answer is read within the step
            worker.host += US
            self.rows["NVTX_EVENTS"].append((*worker.marker, 59, self.marker(prompt, batch), worker.thread, None, 0))
        start, end = min(gpu[0] for gpu in gpus), max(gpu[1] for gpu in gpus)
        return {"stage": "prefill" if is_prefill else "mixed" if is_mixed else "decode", "tokens": prompt + batch,
                "sequences": batch + (1 if prompt else 0), "kernels": (len(work) - 1) * len(workers),
                "host_start_ns": workers[0].marker[0], "host_end_ns": workers[0].marker[1], "gpu_start_ns": start,
                "gpu_window_ns": end - start, "gpu_work_ns": max(gpu[2] for gpu in gpus), "period_ns": None,
                "is_warm_up": number < self.shape.warm_up}

    def launch(self, worker, work, number, has_graph):
        """The host's part. Returns (correlation, time from which it may run) of each piece of work."""
        depth = self.shape.depth
        if depth > 0 and number > depth:
            self.wait(worker, worker.ends[number - 1 - depth], "cudaEventSynchronize_v3020")
        begin = worker.host
        end = None
        worker.host += self.shape.prepare_us * US + self.random.randrange(self.shape.jitter_us * US + 1)
        launched = []
        for row, (name, _, part) in enumerate(work):
            if part == "sampling" and self.shape.after_marker and end is None:
                end = worker.host
                worker.host += 2 * US
            is_in_graph = has_graph and part != "sampling"
            if is_in_graph and row > 0:
                launched.append(launched[-1])
                continue
            ready = worker.host + LATENCY
            blocks = 20 if number < self.shape.warm_up and row == 0 else 1  # a first launch loads its module
            call = "cudaLaunchKernel_v7000" if name else "cudaMemcpyAsync_v3020"
            call = "cudaGraphLaunch_v10000" if is_in_graph else call
            launched.append((self.call(worker, worker.host + LAUNCH * blocks, call), ready))
        worker.marker = begin, end or worker.host
        return launched

    def run_on_gpus(self, workers, work, launched, has_graph, queries, tokens):
        """The GPUs' part: each works in order, and all meet where they communicate. Returns (start, end, work) by
        worker."""
        times = [[None, 0, 0] for _ in workers]
        for row, (name, duration, part) in enumerate(work):
            starts = [max(worker.gpu + GAP, ready[row][1]) for worker, ready in zip(workers, launched)]
            for worker, ready, start, gpu in zip(workers, launched, starts, times):
                end = (max(starts) if part == "communication" else start) + duration
                worker.gpu = end
                gpu[:] = start if gpu[0] is None else gpu[0], end, gpu[2] + end - start
                if name:
                    self.kernel(worker, start, end, name, ready[row][0],
                                row + 1 if has_graph and part != "sampling" else None, queries, tokens)
                else:
                    self.copy(worker, start, end, ready[row][0], 2)
        return times

    def sql(self):
        def literal(value):
            return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)

        lines = []
        for table, columns in TABLES.items():
            names = [f'"{column}" INTEGER' if " " not in column else column for column in columns.split(", ")]
            lines.append(f"CREATE TABLE {table}({', '.join(names)});")
            lines += [f"INSERT INTO {table} VALUES ({', '.join(map(literal, row))});" for row in self.rows[table]]
        return "\n".join(lines) + "\n"


def engine_sql(options):
    """SQL of an export, by the options of the command line as one text."""
    return Engine(parser_of_shapes().parse_args(shlex.split(options))).sql()


def write_sqlite(engine, path):
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    connection.executescript("BEGIN;" + engine.sql() + "COMMIT;")
    connection.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, parents=[parser_of_shapes()],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    arguments = parser.parse_args()
    engine = Engine(arguments)
    write_sqlite(engine, arguments.out)
    print(json.dumps({"replicas": engine.replicas}, indent=1))


if __name__ == "__main__":
    main()
