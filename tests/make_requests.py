#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a recording of a serving engine and the requests that it served, with what is true of both.

Requests arrive at random times. The engine runs one step after another: every sequence in generation makes a token, and
the rest of the step's tokens read prompts, first come, first served, in chunks. Sequences are preempted now and then and
read again what they lost. The host stalls, clients stall, and sometimes nobody asks anything.

  make_requests.py DIR --requests 200      writes run.sqlite, requests.jsonl and the files of other clients there
"""
import argparse
import bisect
import json
import pathlib
import random
import shlex
import sqlite3

from make_engine_trace import TABLES, UTC

US, MS = 1_000, 1_000_000
PID = 4000
GLOBAL_PID = (1 << 56) | (PID << 24)
THREAD = GLOBAL_PID | PID
PERF_COUNTER = 8_123_456_789_012  # a client's monotonic clock at time 0 of the recording


def parser_of_loads():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--slots", type=int, default=24, help="sequences of a step, at most")
    parser.add_argument("--budget", type=int, default=512, help="tokens of a step, at most")
    parser.add_argument("--rate", type=float, default=30, help="requests per second")
    parser.add_argument("--engine", choices=("slots", "vllm"), default="slots")
    parser.add_argument("--preempt", type=float, default=0.002, help="of a sequence in a step")
    parser.add_argument("--stall", type=float, default=0.005, help="of the host before a step")
    parser.add_argument("--late", type=float, default=0.001, help="of a token at the client")
    parser.add_argument("--ahead", action="store_true", help="marks open before the step before ends")
    parser.add_argument("--cache", type=float, default=0, help="requests with a part of their prompt cached")
    parser.add_argument("--hidden", type=float, default=0, help="requests that no file has")
    parser.add_argument("--regular", action="store_true", help="steps of equal length")
    parser.add_argument("--offset-ns", type=int, default=0, help="to be added to the client's clock")
    return parser


class Request:
    def __init__(self, number, sent, rng, shape):
        self.id = f"r{number:05}"
        self.sent = sent
        self.received = sent + rng.randrange(200 * US, 900 * US)
        self.prompt = rng.choice((rng.randrange(8, 200), rng.randrange(200, 1800)))
        self.output = rng.randrange(2, 48)
        self.cached = self.prompt // 2 // 16 * 16 if rng.random() < shape.cache else 0
        self.is_hidden = rng.random() < shape.hidden
        self.left = self.prompt - self.cached  # tokens to read before the next one is made
        self.slot = None
        self.prefill, self.made, self.arrivals = [], [], []
        self.planted = {}  # by token: why it is late


class Load:
    """The simulation. Times are those of the recording."""

    def __init__(self, shape):
        self.shape, self.rng = shape, random.Random(shape.seed)
        self.rows = {table: [] for table in TABLES}
        self.strings, self.correlation, self.steps = {}, 0, []
        sent, self.requests = 20 * MS, []
        for number in range(shape.requests):
            sent += int(self.rng.expovariate(shape.rate) * 1e9)
            sent += self.rng.randrange(300 * MS, 900 * MS) if self.rng.random() < 0.01 else 0  # nobody asks
            self.requests.append(Request(number, sent, self.rng, shape))
        self.start_up()
        self.run()
        for request in self.requests:
            self.deliver(request)
        self.rows["StringIds"] = [(number, text) for text, number in self.strings.items()]
        self.rows["TARGET_INFO_SESSION_START_TIME"] = [(UTC,)]
        self.rows["TARGET_INFO_GPU"] = [(0, "NVIDIA H100 80GB HBM3", 85899345920, 3352320000000, 1980000000, 132, 0)]
        self.rows["TARGET_INFO_CUDA_DEVICE"] = [(0, 0, PID)]

    def text(self, text):
        return self.strings.setdefault(text, len(self.strings) + 1)

    def call(self, start, name, length=4 * US):
        self.correlation += 1
        self.rows["CUPTI_ACTIVITY_KIND_RUNTIME"].append((start, start + length, THREAD, self.correlation,
                                                         self.text(name)))
        return self.correlation

    def kernel(self, start, end, name, correlation):
        number = self.text(name)
        self.rows["CUPTI_ACTIVITY_KIND_KERNEL"].append((start, end, 0, 1, 7, correlation, GLOBAL_PID, number, number,
                                                        64, 1, 1, 128, 1, 1, None))

    def copy(self, start, end, correlation, kind):
        self.rows["CUPTI_ACTIVITY_KIND_MEMCPY"].append((start, end, 0, 1, 7, correlation, GLOBAL_PID, 4096, kind))

    def start_up(self):
        self.copy(1 * MS + 10 * US, 2 * MS, self.call(1 * MS, "cudaMemcpyAsync_v3020"), 1)
        self.free_ns = 2 * MS  # when the GPU is

    def run(self):
        waiting, running, at = [], [], 0
        free_slots = list(range(self.shape.slots))
        host = self.free_ns
        while at < len(self.requests) or waiting or running:
            while at < len(self.requests) and self.requests[at].received <= host:
                bisect.insort(waiting, self.requests[at], key=lambda request: request.received)
                at += 1
            if not waiting and not running:
                host = max(host, min(request.received for request in self.requests[at:at + 50]))
                later = self.requests[at:at + 50]
                waiting = sorted((one for one in later if one.received <= host), key=lambda one: one.received)
                self.requests[at:at + 50] = waiting + [one for one in later if one.received > host]
                at += len(waiting)
            plan = self.schedule(waiting, running, free_slots)
            host = self.step(plan, host)
            for request, _ in plan:
                if len(request.made) == request.output:
                    running.remove(request)
                    free_slots.append(request.slot)

    def schedule(self, waiting, running, free_slots):
        """(request, tokens) of a step: generation first, then prompts in order."""
        plan, budget = [], self.shape.budget
        for request in running:
            if request.made and request.left == 1 and budget > 0:
                if self.rng.random() < self.shape.preempt:
                    request.left = request.prompt + len(request.made)  # everything again
                    request.planted[len(request.made)] = "missing"
                    request.pause = self.rng.randrange(1, 6)
                    continue
                plan.append((request, 1))
                budget -= 1
        readers = [request for request in running if not (request.made and request.left == 1)]
        for request in readers:
            if getattr(request, "pause", 0) > 0:
                request.pause -= 1
                continue
            tokens = min(budget, request.left)
            if tokens > 0 and not (request.made and tokens == 1):
                plan.append((request, tokens))
                budget -= tokens
        while waiting and free_slots and budget > 1:
            request = waiting.pop(0)
            request.slot = free_slots.pop(0)
            running.append(request)
            tokens = min(budget, request.left)
            plan.append((request, tokens))
            budget -= tokens
        return plan

    def marker(self, plan):
        context = [(request, tokens) for request, tokens in plan if not request.made]
        others = [(request, tokens) for request, tokens in plan if request.made]
        prompt = sum(tokens for _, tokens in context)
        if self.shape.engine == "vllm":
            return (f"execute_context_{len(context)}({prompt})_generation_{len(others)}"
                    f"({sum(tokens for _, tokens in others)})")
        slots = ",".join(f"{request.slot}:{tokens}" for request, tokens in plan)
        return f"step[prefill={prompt} decode={len(others)} seqs={slots}]"

    def step(self, plan, host):
        rng = self.rng
        if not plan:  # all are paused
            return host + 500 * US
        stall = rng.randrange(30 * MS, 90 * MS) if rng.random() < self.shape.stall else 0
        tokens = sum(tokens for _, tokens in plan)
        length = 9 * MS + 20 * US * tokens + 30 * US * len(plan)
        length = 12 * MS if self.shape.regular else length + rng.randrange(2 * MS)
        mark = host + rng.randrange(20 * US, 200 * US) + stall
        gpu = max(mark + 60 * US, self.free_ns + 2 * US)
        gap = rng.randrange(100 * US, 400 * US)
        first, second = length // 3, length - length // 3
        self.kernel(gpu, gpu + first, "nvjet_tst_128x64", self.call(mark + 10 * US, "cudaLaunchKernel_v7000"))
        start = gpu + first + gap
        self.kernel(start, start + second, "paged_attention_v2_kernel",
                    self.call(mark + 20 * US, "cudaLaunchKernel_v7000"))
        end = start + second + 8 * US
        self.copy(end - 6 * US, end, self.call(mark + 30 * US, "cudaMemcpyAsync_v3020"), 2)
        close = mark + 50 * US
        self.rows["NVTX_EVENTS"].append((mark, close, 59, self.marker(plan), THREAD, None, 0))
        number = len(self.steps)
        begin = max(min(mark, gpu), self.free_ns)
        prompt = sum(tokens for request, tokens in plan if not request.made)
        self.steps.append({"begin": begin, "end": end, "busy": first + second + 6 * US, "prompt": prompt,
                           "stall": stall})
        self.free_ns = end
        for request, tokens in plan:
            if not request.made:
                request.prefill.append(number)
            request.left -= tokens
            if request.left == 0:
                request.made.append(number)
                request.left = 1
        # An engine that runs ahead marks the next step while the GPU still works on this one.
        return end - 3 * MS if self.shape.ahead else end

    def deliver(self, request):
        time = 0
        for token, number in enumerate(request.made):
            delay = self.rng.randrange(300 * US, 1500 * US)
            if token > 0 and self.rng.random() < self.shape.late:
                delay += self.rng.randrange(150 * MS, 300 * MS)
                request.planted[token] = "delivery"
            time = max(time + 1, self.steps[number]["end"] + delay)
            request.arrivals.append(time)

    def visible(self):
        return [request for request in self.requests if not request.is_hidden]

    # What is true of a request.
    def parts(self, request):
        begins = [step["begin"] for step in self.steps]
        own, parts = request.prefill, dict.fromkeys(("network", "queue_busy", "queue_idle", "prefill_gpu", "prefill_host",
                                                     "other_steps", "between", "delivery"), 0)
        at = request.received
        parts["network"] = request.received - request.sent
        names = ("queue_busy", "queue_idle")
        for number in own:
            step = self.steps[number]
            inside, first = 0, max(bisect.bisect_right(begins, at) - 1, 0)
            for other in self.steps[first:number]:
                inside += max(0, min(other["end"], step["begin"]) - max(other["begin"], at))
            parts[names[0]] += inside
            parts[names[1]] += step["begin"] - at - inside
            parts["prefill_gpu"] += step["busy"]
            parts["prefill_host"] += step["end"] - step["begin"] - step["busy"]
            at = step["end"]
            names = ("other_steps", "between")
        parts["delivery"] = request.arrivals[0] - at
        return parts

    # Files.
    def write_recording(self, path):
        path.unlink(missing_ok=True)
        connection = sqlite3.connect(path)
        for table, columns in TABLES.items():
            names = [f'"{column}" INTEGER' if " " not in column else column for column in columns.split(", ")]
            connection.execute(f"CREATE TABLE {table}({', '.join(names)})")
            connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(names))})", self.rows[table])
        connection.commit()
        connection.close()

    def sql(self):
        def literal(value):
            return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)

        lines = []
        for table, columns in TABLES.items():
            names = [f'"{column}" INTEGER' if " " not in column else column for column in columns.split(", ")]
            lines.append(f"CREATE TABLE {table}({', '.join(names)});")
            lines += [f"INSERT INTO {table} VALUES ({', '.join(map(literal, row))});" for row in self.rows[table]]
        return "\n".join(lines) + "\n"

    def client(self, time):
        return UTC + time - self.shape.offset_ns

    def own_records(self, has_slots=True, has_received=True, is_local=False):
        for request in self.visible():
            record = {"id": request.id, "sent_ns": self.client(request.sent),
                      "token_ns": [self.client(time) for time in request.arrivals],
                      "done_ns": self.client(request.arrivals[-1]), "prompt_tokens": request.prompt,
                      "output_tokens": request.output}
            if has_slots:
                record["slot"] = request.slot
            if has_received:
                record["received_ns"] = UTC + request.received
            if is_local:
                record["local"] = True
            yield record

    def aiperf_records(self):
        for request in self.visible():
            gaps = [(b - a) / MS for a, b in zip(request.arrivals, request.arrivals[1:])]
            yield {"metadata": {"session_num": 0, "x_request_id": request.id, "request_start_ns": self.client(request.sent),
                                "request_end_ns": self.client(request.arrivals[-1]), "benchmark_phase": "profiling",
                                "was_cancelled": False},
                   "metrics": {"input_sequence_length": {"value": request.prompt, "unit": "tokens"},
                               "output_sequence_length": {"value": request.output, "unit": "tokens"},
                               "time_to_first_token": {"value": (request.arrivals[0] - request.sent) / MS, "unit": "ms"},
                               "inter_chunk_latency": {"value": gaps, "unit": "ms"}},
                   "error": None}

    def bench_result(self, has_starts=True):
        requests = self.visible()
        result = {"backend": "vllm", "completed": len(requests),
                  "input_lens": [request.prompt for request in requests],
                  "output_lens": [request.output for request in requests],
                  "ttfts": [(request.arrivals[0] - request.sent) / 1e9 for request in requests],
                  "itls": [[(b - a) / 1e9 for a, b in zip(request.arrivals, request.arrivals[1:])]
                           for request in requests],
                  "errors": ["" for _ in requests]}
        if has_starts:
            result["start_times"] = [(PERF_COUNTER + request.sent) / 1e9 for request in requests]
        return result

    def dynamo_records(self):
        for request in self.visible():
            received = (UTC + request.received) // MS
            yield {"schema": "dynamo.request.trace.v1", "event_type": "request_end",
                   "event_time_unix_ms": (UTC + request.arrivals[-1]) // MS,
                   "request": {"request_id": request.id, "request_received_ms": received,
                               "input_tokens": request.prompt, "output_tokens": request.output,
                               "ttft_ms": (UTC + request.arrivals[0]) / MS - received,
                               "total_time_ms": (UTC + request.arrivals[-1]) / MS - received}}

    def tensorrt_records(self):
        for request in self.visible():
            yield {"request_id": request.id, "perf_metrics": {"timing_metrics": {
                "arrival_time": (PERF_COUNTER + request.received) / 1e9,
                "first_scheduled_time": (PERF_COUNTER + self.steps[request.prefill[0]]["begin"]) / 1e9,
                "first_token_time": (PERF_COUNTER + request.arrivals[0]) / 1e9,
                "last_token_time": (PERF_COUNTER + request.arrivals[-1]) / 1e9}}}


def serving_sql(options):
    """SQL of an export, by the options of the command line as one text."""
    return Load(parser_of_loads().parse_args(shlex.split(options))).sql()


def write_lines(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def write_all(load, directory):
    load.write_recording(directory / "run.sqlite")
    write_lines(directory / "requests.jsonl", load.own_records())
    write_lines(directory / "profile_export.jsonl", load.aiperf_records())
    (directory / "vllm.json").write_text(json.dumps(load.bench_result()))
    write_lines(directory / "sglang.jsonl", [load.bench_result(False)])
    write_lines(directory / "dynamo.jsonl", load.dynamo_records())
    (directory / "tensorrt.json").write_text(json.dumps(list(load.tensorrt_records()), indent=1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, parents=[parser_of_loads()],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.directory.mkdir(parents=True, exist_ok=True)
    load = Load(arguments)
    write_all(load, arguments.directory)
    print(f"{len(load.requests)} requests, {len(load.steps)} steps")


if __name__ == "__main__":
    main()
