# SPDX-License-Identifier: Apache-2.0
"""Rows of the tables. Field names are the columns, in their order; docs/metrics.md says what each means.

Times are nanoseconds. What is not known is None, never 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Finding(NamedTuple):
    """Something worth fixing, with its largest saving."""

    id: str
    stage: str
    device: str | None
    blocker: bool
    saving_ns: int
    window_ns: int
    saving_fraction: float | None
    bucket: str | None
    overlaps: bool
    bound: str | None
    confidence: str
    sentence: str
    next: str
    evidence: tuple[str, ...]


class Stage(NamedTuple):
    """All marks of one stage."""

    stage: str
    nested: bool
    instances: int
    open: int
    host_total_ns: int
    host_min_ns: int
    host_median_ns: int
    host_max_ns: int
    host_first_ns: int
    host_steady_mean_ns: int | None
    kernel_ns: int
    kernels: int
    graph_kernels: int
    tokens: int | None


class Step(NamedTuple):
    """One run through a stage, counted once for all ranks of its group."""

    stage: str
    start_ns: int
    duration_ns: int
    is_open: bool
    is_step: bool
    is_steady: bool
    tokens: int | None
    sequences: int | None
    gpu_start_ns: int | None
    gpu_window_ns: int | None
    gpu_work_ns: int | None
    period_ns: int | None
    rank_group: int


class Ledger(NamedTuple):
    """Where the time of a stage's windows on one GPU went. The columns from compute_ns on sum to window_ns."""

    stage: str
    device: str
    instances: int
    window_ns: int
    busy_fraction: float | None
    base_ns: int
    lead_ns: int
    host_wait_ns: int
    compute_ns: int
    comm_ns: int
    copy_ns: int
    other_stage_ns: int
    unattributed_ns: int
    graph_ns: int
    sync_ns: int
    launch_late_ns: int
    started_late_ns: int
    queued_ns: int
    unknown_idle_ns: int
    unrecorded_ns: int
    tail_ns: int


class Kernel(NamedTuple):
    """A kernel on a device in a stage."""

    kernel_name: str
    short_name: str
    device: str
    stage: str
    family: str
    total_ns: int
    calls: int
    mean_ns: float
    kernel_fraction: float
    min_ns: int
    median_ns: int
    p99_ns: int | None
    max_ns: int
    steady_ns: int | None
    num_shapes: int
    shapes: tuple[str, ...]
    by_shape: tuple[Any, ...]
    histogram: tuple[Any, ...]
    bound: str | None
    covered_ns: int
    covered_fraction: float


class Launch(NamedTuple):
    """One kernel that ran. Times are on the recording's clock."""

    start_ns: int
    end_ns: int
    duration_ns: int
    kernel_name: str
    family: str
    stage: str
    device: str
    stream: int
    pid: int
    shape: str
    in_graph: bool
    correlation: int
    pass_: str | None
    pass_kind: str | None
    pass_number: int | None
    layer: int | None
    part: str | None


class LayerPart(NamedTuple):
    """A kernel's place in a pass through the layers."""

    # The column `pass` is a word of Python.
    pass_: str
    place: str
    part: str
    kernel_name: str
    short_name: str
    family: str
    launches: int
    total_ns: int
    mean_ns: float
    median_ns: int
    pass_fraction: float
    weight_bytes: int | None
    kv_bytes: int | None
    flops: int | None
    bytes_per_s: float | None
    roof_fraction: float | None
    above_roof_ns: int | None


class Request(NamedTuple):
    """One request of a client, with the parts of its time to first token."""

    id: str
    sent_ns: int
    ttft_ns: int | None
    total_ns: int | None
    itl_mean_ns: int | None
    itl_max_ns: int | None
    prompt_tokens: int | None
    output_tokens: int | None
    told: str
    reason: str | None
    first_step: int | None
    last_step: int | None
    network_ns: int | None
    queue_busy_ns: int | None
    queue_idle_ns: int | None
    prefill_gpu_ns: int | None
    prefill_host_ns: int | None
    other_steps_ns: int | None
    between_ns: int | None
    delivery_ns: int | None
