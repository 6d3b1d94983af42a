#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Traces of PyTorch's profiler of tensor x pipeline x data parallel trainings, one per rank: `analyze` of all of them and `merge` of
their summaries must recover the groups, in the same words. Without descriptions and without layers nothing may be claimed.

The same as nsys exports with the payloads of NCCL's NVTX ranges, which have an id for each communicator and no list of its ranks."""
import gzip
import hashlib
import itertools
import json
import pathlib
import random
import sqlite3
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import testing

KINDS = ("tensor", "pipeline", "data")
DESCRIPTIONS = ("TENSOR_MODEL_PARALLEL_GROUP", "PIPELINE_MODEL_PARALLEL_GROUP", "DATA_PARALLEL_GROUP")
# Kernels of a layer, forward and backward, as engines name them.
FORWARD = ("rms_norm_kernel", "ampere_bf16_s16816gemm_bf16_128x128_qkv", "rotary_embedding_kernel", "flash_fwd_kernel", "ampere_bf16_s16816gemm_bf16_64x64_o",
           None, "rms_norm_kernel", "ampere_bf16_s16816gemm_bf16_256x128_gate_up", "silu_and_mul_kernel", "ampere_bf16_s16816gemm_bf16_128x64_down", None)
BACKWARD = ("ampere_bf16_s16816gemm_bf16_128x64_dgrad", "silu_backward_kernel", "ampere_bf16_s16816gemm_bf16_256x128_wgrad", "rms_norm_backward_kernel",
            "ampere_bf16_s16816gemm_bf16_64x64_dgrad", "flash_bwd_dq_dk_dv_loop_kernel", "ampere_bf16_s16816gemm_bf16_128x128_wgrad", "rms_norm_backward_kernel")


def run(*argv, codes=(0,)):
    result = subprocess.run([str(word) for word in argv], capture_output=True, text=True, timeout=120)
    assert result.returncode in codes, (argv, result.returncode, result.stderr)
    return result.stdout


class Layout:
    def __init__(self, sizes, order, has_layers, is_described, layers=12, steps=3):
        self.sizes, self.order, self.has_layers, self.is_described, self.layers, self.steps = sizes, order, has_layers, is_described, layers, steps
        self.ranks = sizes[0] * sizes[1] * sizes[2]

    def place(self, rank):
        place = [0, 0, 0]
        for dimension in self.order:
            place[dimension] = rank % self.sizes[dimension]
            rank //= self.sizes[dimension]
        return place

    def group(self, rank, dimension):
        mine = self.place(rank)
        return [other for other in range(self.ranks)
                if all(a == b for d, (a, b) in enumerate(zip(mine, self.place(other))) if d != dimension)]


class Trace:
    ending = "json.gz"

    def __init__(self, layout, rank):
        self.layout, self.rank, self.events, self.time, self.correlation = layout, rank, [], 1000.0, 1

    def kernel(self, name, duration, stream=7, **args):
        self.correlation += 1
        common = {"External id": self.correlation, "correlation": self.correlation}
        self.events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 50, "tid": 50, "ts": self.time - 5, "dur": 2, "args": common})
        self.events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream, "ts": self.time, "dur": duration,
                            "args": {**common, "device": 0, "context": 1, "stream": stream, "grid": [8, 1, 1], "block": [128, 1, 1], **args}})
        self.time += duration + 1

    def collective(self, operation, dimension, kernel, duration=20):
        members = self.layout.group(self.rank, dimension)
        if len(members) > 1:
            self.kernel(kernel, duration, 20 + dimension, **{
                "Collective name": operation, "Process Group Name": str(1 + 100 * dimension + members[0]), "Group size": len(members),
                "Process Group Ranks": str(members),
                "Process Group Description": DESCRIPTIONS[dimension] if self.layout.is_described else "undefined"})

    def step(self):
        if not self.layout.has_layers:
            # Communication alone, as in a trace without the model's kernels.
            for _ in range(4):
                self.kernel("some_kernel", 30)
                self.collective("allreduce", 0, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)")
            self.collective("send", 1, "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)")
            self.collective("allreduce", 2, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)")
            return
        self.collective("recv", 1, "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)")
        self.kernel("indexSelectLargeIndex_embedding", 9)
        for _ in range(self.layout.layers):
            for number, name in enumerate(FORWARD):
                if name is None:
                    self.collective("allreduce", 0, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)")
                else:
                    self.kernel(name, 20 + 5 * number)
        self.kernel("rms_norm_kernel", 9)
        self.kernel("ampere_bf16_s16816gemm_bf16_256x128_lm_head", 90)
        self.collective("send", 1, "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)")
        self.kernel("softmax_cross_entropy_backward_kernel", 30)
        for _ in range(self.layout.layers):
            for number, name in enumerate(BACKWARD):
                self.kernel(name, 30 + 5 * number)
            self.collective("_reduce_scatter_base", 2, "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)")
        self.kernel("multi_tensor_apply_kernel_adam", 40)

    def write(self, path):
        for _ in range(self.layout.steps):
            self.step()
        trace = {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": self.rank, "world_size": self.layout.ranks},
                 "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132}], "traceEvents": self.events,
                 "baseTimeNanoseconds": 1_760_000_000_000_000_000}
        with gzip.open(path, "wt", compresslevel=1) as file:
            json.dump(trace, file)


class NsysTrace(Trace):
    """The layouts of payloads are NCCL's own; the blobs are as `nsys export --include-blobs=true` writes them."""
    ending = "sqlite"
    TABLES = """
        CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
        CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, contextId, streamId, correlationId, globalPid, demangledName, shortName, mangledName,
            gridX, gridY, gridZ, blockX, blockY, blockZ, graphNodeId);
        CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId);
        CREATE TABLE NVTX_EVENTS (start, end, eventType, text TEXT, globalTid, textId, domainId, binaryData TEXT);
        CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId, schemaId, idx, flags, type, name, description, arrayOrUnionDetail, offset);
        CREATE TABLE TARGET_INFO_GPU (id, name, smCount);
        INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H100 80GB HBM3', 132);
        INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES (1, 7, 0, NULL, 18, 'NCCL communicator ID', NULL, NULL, NULL),
            (1, 7, 1, NULL, 22, 'Message size [bytes]', NULL, NULL, 8), (1, 7, 2, NULL, 5, 'Peer rank', NULL, NULL, 16),
            (1, 8, 0, NULL, 18, 'NCCL communicator ID', NULL, NULL, NULL), (1, 8, 1, NULL, 22, 'Message size [bytes]', NULL, NULL, 8);
        INSERT INTO NVTX_EVENTS VALUES (0, NULL, 75, 'NCCL', 16777217, NULL, 1, NULL);"""
    CALLS = {"allreduce": "ncclAllReduce", "_reduce_scatter_base": "ncclReduceScatter", "send": "ncclSend", "recv": "ncclRecv"}
    THREAD = 16777217

    def __init__(self, layout, rank):
        super().__init__(layout, rank)
        self.names, self.kernels, self.calls, self.ranges = {}, [], [], []

    def kernel(self, name, duration, stream=7, **_):
        self.correlation += 1
        start = round(self.time * 1000)
        number = self.names.setdefault(name, len(self.names) + 1)
        launch = self.names.setdefault("cuLaunchKernelEx", len(self.names) + 1)
        self.kernels.append((start, start + duration * 1000, 0, 1, stream, self.correlation, 16777216, number, number, None, 8, 1, 1, 128, 1, 1, None))
        self.calls.append((start - 5000, start - 3000, self.THREAD, self.correlation, launch))
        self.time += duration + 1

    def mark(self, name, start, end, schema=None, fields=b""):
        blob = struct.pack("<4Q", 1, schema, len(fields), 32) + fields if schema else None
        self.ranges.append((start, end, 59, name, self.THREAD, None, 1, blob))

    def collective(self, operation, dimension, kernel, duration=20):
        members = self.layout.group(self.rank, dimension)
        if len(members) < 2:
            return
        start, communicator = round(self.time * 1000), hashlib.sha256(repr((dimension, members)).encode()).digest()[:8]
        # All on one stream, as where nothing but the payloads tells the groups apart.
        self.kernel(kernel, duration, 20)
        if operation in ("send", "recv"):  # in a group: the kernel is launched at its end
            self.mark("ncclGroupStart", start - 9000, start - 8900)
            self.mark(self.CALLS[operation], start - 8800, start - 8700, 7, communicator + struct.pack("<Qii", 4096, 1, 0))
            self.mark("ncclGroupEnd", start - 6000, start - 2000)
        else:
            self.mark(self.CALLS[operation], start - 9000, start - 2000, 8, communicator + struct.pack("<Q", 4096))

    def write(self, path):
        for _ in range(self.layout.steps):
            self.step()
        with sqlite3.connect(path) as file:
            file.executescript(self.TABLES)
            file.executemany("INSERT INTO StringIds VALUES (?, ?)", [(number, name) for name, number in self.names.items()])
            for table, rows in (("CUPTI_ACTIVITY_KIND_KERNEL", self.kernels), ("CUPTI_ACTIVITY_KIND_RUNTIME", self.calls), ("NVTX_EVENTS", self.ranges)):
                file.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
        file.close()


def ranks_text(ranks):
    steps = {b - a for a, b in zip(ranks, ranks[1:])}
    if len(steps) > 1 or (len(ranks) == 2 and steps != {1}):
        return ", ".join(map(str, ranks))
    return f"{ranks[0]}-{ranks[-1]}" + ("" if steps == {1} else f" by {steps.pop()}")


def check(program, layout, folder, writer):
    folder.mkdir()
    files = [folder / f"rank-{rank}.{writer.ending}" for rank in range(layout.ranks)]
    for rank, path in enumerate(files):
        writer(layout, rank).write(path)
        run(program, "analyze", path, "--out", folder / f"out-{rank}", "--run-id", "job")
    fleet = json.loads(run(program, "merge", *(folder / f"out-{rank}" for rank in range(layout.ranks)), "--json"))
    is_told = layout.has_layers or layout.is_described
    expected = {(KINDS[dimension] if is_told else None, ranks_text(layout.group(rank, dimension)))
                for dimension in range(3) if layout.sizes[dimension] > 1 for rank in range(layout.ranks)}
    found = {(group["kind"], group["ranks"]) for group in fleet["groups"]}
    assert found == expected, (layout.sizes, layout.order, found ^ expected, fleet["groups"])
    if layout.has_layers:
        parts = {(part["block"], part["part"]): part for part in fleet["parts"] if part["pass"].startswith("forward")}
        qkv = parts["layer", "qkv"]
        assert qkv["launches"] == layout.ranks * layout.steps * layout.layers and qkv["ranks"] == layout.ranks, qkv
        assert qkv["total_ns"] == qkv["launches"] * 25_000, qkv  # 20 us and five times its place
    # The same words from the traces themselves.
    words = run(program, "merge", *(folder / f"out-{rank}" for rank in range(layout.ranks)))
    text = run(program, "analyze", *files)
    lines = [line.strip() for line in words.splitlines() if "group" in line and "rank" in line and "(" in line]
    plain = " ".join(text.split())
    for line in lines[:3]:
        assert line.split("(")[0].strip() in plain, (line, text)


def main():
    options = testing.arguments("program", layouts=6)
    chance = random.Random(11)
    orders = list(itertools.permutations(range(3)))
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(options.layouts):
            sizes = chance.choice([(2, 2, 2), (2, 1, 2), (4, 1, 1), (1, 2, 2), (2, 2, 1), (2, 4, 1)])
            layout = Layout(sizes, chance.choice(orders), number % 3 != 2, number % 3 == 1)
            check(options.program, layout, pathlib.Path(scratch) / str(number), Trace)
            if not layout.is_described:  # NCCL does not know what a program calls its groups
                check(options.program, layout, pathlib.Path(scratch) / f"{number}-nsys", NsysTrace)
            print(f"{sizes} in order {layout.order}: groups recovered" if layout.has_layers or layout.is_described else f"{sizes}: nothing claimed", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
