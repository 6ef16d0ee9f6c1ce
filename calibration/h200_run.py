#!/usr/bin/env python3
"""Measures one GPU for the twin's step-time formula: ceilings, kernels and whole decoder stacks with random weights.

Needs PyTorch and Triton on a Hopper GPU. Every timing is the median of replays of a CUDA graph on random data, unless
the row says `eager`. Rows are appended to measured_rows.csv as they come, so a run that is cut short still counts; the
script stops by itself at --stop-seconds. It validates the shape of the formula and the hardware ceilings. It does not
measure any serving engine: these are PyTorch and Triton kernels, on one GPU, without NVLink.
"""

import argparse
import csv
import json
import math
import os
import statistics
import subprocess
import time

START_SECONDS = time.monotonic()

import torch  # noqa: E402  (the clock starts before the import, which takes seconds)
import triton  # noqa: E402
import triton.language as tl  # noqa: E402

BF16 = torch.bfloat16
FP8 = torch.float8_e4m3fn
HEAD_DIM = 128
PAGE_TOKENS = 64
COLUMNS = [
    "index", "block", "kind", "model", "weights", "kv", "mode", "layers", "gemm_m", "gemm_n", "gemm_k", "bytes",
    "prefill_new", "prefill_cached", "decode_batch", "decode_context_sum", "replays", "median_ms", "p10_ms", "p90_ms",
]

# Name: (layers measured, layers of the model, hidden, query heads, KV heads, feed-forward, vocabulary)
STACKS = {
    "llama-3.1-8b": (32, 32, 4096, 32, 8, 14336, 128256),
    "qwen3-8b": (36, 36, 4096, 32, 8, 12288, 151936),
    "llama-3.1-70b": (8, 80, 8192, 64, 8, 28672, 128256),
}


@triton.jit
def rms_norm_kernel(x_ptr, residual_ptr, weight_ptr, out_ptr, hidden, BLOCK: tl.constexpr):
    """Adds x to the residual stream, writes it back, and writes the normalised row in the output's own dtype."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    mask = columns < hidden
    offset = row * hidden + columns
    value = tl.load(x_ptr + offset, mask=mask, other=0.0).to(tl.float32)
    value += tl.load(residual_ptr + offset, mask=mask, other=0.0).to(tl.float32)
    tl.store(residual_ptr + offset, value.to(tl.bfloat16), mask=mask)
    scale = tl.rsqrt(tl.sum(value * value, axis=0) / hidden + 1e-5)
    weight = tl.load(weight_ptr + columns, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + offset, (value * scale * weight).to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def silu_mul_kernel(x_ptr, out_ptr, ffn, BLOCK: tl.constexpr):
    """Writes silu(gate) * up for one tile of one row."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = columns < ffn
    gate = tl.load(x_ptr + row * 2 * ffn + columns, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(x_ptr + row * 2 * ffn + ffn + columns, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * ffn + columns, (gate * tl.sigmoid(gate) * up).to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def rotate_kernel(qkv_ptr, q_ptr, k_ptr, v_ptr, position_ptr, slot_ptr, q_heads, kv_heads, slot_stride, head_stride,
                  HALF: tl.constexpr):
    """Applies rotary embedding to one head of one token; keys and values go straight to their cache slot."""
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    lane = tl.arange(0, HALF)
    source = qkv_ptr + token * (q_heads + 2 * kv_heads) * 2 * HALF + head * 2 * HALF
    first = tl.load(source + lane).to(tl.float32)
    second = tl.load(source + HALF + lane).to(tl.float32)
    position = tl.load(position_ptr + token).to(tl.float32)
    angle = position * tl.exp2(-lane.to(tl.float32) * (18.93 / HALF))
    cosine = tl.cos(angle)
    sine = tl.sin(angle)
    slot = tl.load(slot_ptr + token).to(tl.int64)
    if head < q_heads:
        target = q_ptr + token * q_heads * 2 * HALF + head * 2 * HALF
        tl.store(target + lane, (first * cosine - second * sine).to(tl.bfloat16))
        tl.store(target + HALF + lane, (second * cosine + first * sine).to(tl.bfloat16))
    elif head < q_heads + kv_heads:
        target = k_ptr + slot * slot_stride + (head - q_heads) * head_stride
        tl.store(target + lane, (first * cosine - second * sine).to(k_ptr.dtype.element_ty))
        tl.store(target + HALF + lane, (second * cosine + first * sine).to(k_ptr.dtype.element_ty))
    else:
        target = v_ptr + slot * slot_stride + (head - q_heads - kv_heads) * head_stride
        tl.store(target + lane, first.to(v_ptr.dtype.element_ty))
        tl.store(target + HALF + lane, second.to(v_ptr.dtype.element_ty))


@triton.jit
def decode_split_kernel(q_ptr, k_ptr, v_ptr, table_ptr, length_ptr, partial_ptr, stats_ptr, table_stride, kv_heads,
                        splits, pages_per_split, scale, GROUP: tl.constexpr, ROWS: tl.constexpr, PAGE: tl.constexpr,
                        DIM: tl.constexpr):
    """One split of paged decode attention: the queries of one KV head of one sequence over a run of its pages."""
    sequence = tl.program_id(0)
    head = tl.program_id(1)
    split = tl.program_id(2)
    rows = tl.arange(0, ROWS)
    lanes = tl.arange(0, DIM)
    tokens = tl.arange(0, PAGE)
    length = tl.load(length_ptr + sequence)
    q_base = (sequence * kv_heads + head).to(tl.int64) * GROUP * DIM
    q = tl.load(q_ptr + q_base + rows[:, None] * DIM + lanes[None, :], mask=rows[:, None] < GROUP, other=0.0)
    best = tl.full([ROWS], -1e30, tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    output = tl.zeros([ROWS, DIM], tl.float32)
    first_page = split * pages_per_split
    last_page = tl.minimum(first_page + pages_per_split, (length + PAGE - 1) // PAGE)
    for page in range(first_page, last_page):
        block = tl.load(table_ptr + sequence * table_stride + page).to(tl.int64)
        base = (block * PAGE + tokens)[:, None] * (kv_heads * DIM) + head * DIM + lanes[None, :]
        inside = page * PAGE + tokens < length
        k = tl.load(k_ptr + base).to(tl.bfloat16)
        score = tl.dot(q, tl.trans(k)) * scale
        score = tl.where(inside[None, :], score, -1e30)
        peak = tl.maximum(best, tl.max(score, axis=1))
        weight = tl.exp(score - peak[:, None])
        shrink = tl.exp(best - peak)
        total = total * shrink + tl.sum(weight, axis=1)
        v = tl.load(v_ptr + base).to(tl.bfloat16)
        output = output * shrink[:, None] + tl.dot(weight.to(tl.bfloat16), v)
        best = peak
    place = ((sequence * kv_heads + head) * splits + split).to(tl.int64)
    keep = rows[:, None] < GROUP
    tl.store(partial_ptr + place * GROUP * DIM + rows[:, None] * DIM + lanes[None, :], output, mask=keep)
    tl.store(stats_ptr + place * GROUP * 2 + rows * 2, best, mask=rows < GROUP)
    tl.store(stats_ptr + place * GROUP * 2 + rows * 2 + 1, total, mask=rows < GROUP)


@triton.jit
def decode_merge_kernel(partial_ptr, stats_ptr, out_ptr, splits, GROUP: tl.constexpr, DIM: tl.constexpr,
                        SPLITS: tl.constexpr):
    """Merges the splits of one query row."""
    pair = tl.program_id(0).to(tl.int64)
    row = tl.program_id(1)
    split = tl.arange(0, SPLITS)
    lanes = tl.arange(0, DIM)
    live = split < splits
    stats = stats_ptr + (pair * splits + split) * GROUP * 2 + row * 2
    best = tl.load(stats, mask=live, other=-1e30)
    total = tl.load(stats + 1, mask=live, other=0.0)
    weight = tl.where(live, tl.exp(best - tl.max(best, axis=0)), 0.0)
    part = tl.load(partial_ptr + ((pair * splits + split) * GROUP + row)[:, None] * DIM + lanes[None, :],
                   mask=live[:, None], other=0.0)
    merged = tl.sum(part * weight[:, None], axis=0) / tl.sum(total * weight, axis=0)
    tl.store(out_ptr + (pair * GROUP + row) * DIM + lanes, merged.to(tl.bfloat16))


class Run:
    """Owns the clock, the output files and the row counter."""

    def __init__(self, out_folder, stop_seconds, quick):
        self.stop_seconds = stop_seconds
        self.quick = quick
        self.index = 0
        self.failures = []
        os.makedirs(out_folder, exist_ok=True)
        self.out_folder = out_folder
        self.file = open(os.path.join(out_folder, "measured_rows.csv"), "w", newline="")
        self.writer = csv.DictWriter(self.file, COLUMNS)
        self.writer.writeheader()

    def elapsed(self):
        return time.monotonic() - START_SECONDS

    def has_time(self, until=None):
        return self.elapsed() < (self.stop_seconds if until is None else until)

    def add(self, times_ms, **fields):
        ordered = sorted(times_ms)
        row = {column: "" for column in COLUMNS}
        row.update(fields)
        row.update(index=self.index, replays=len(ordered), median_ms=f"{statistics.median(ordered):.6f}",
                   p10_ms=f"{ordered[len(ordered) // 10]:.6f}", p90_ms=f"{ordered[(len(ordered) * 9) // 10]:.6f}")
        self.writer.writerow(row)
        self.file.flush()
        self.index += 1
        return statistics.median(ordered)

    def attempt(self, label, action):
        """Runs one point; a point that fails is listed and the run goes on."""
        try:
            return action()
        except Exception as error:  # a single unsupported shape must not end a run that cost minutes
            self.failures.append(f"{label}: {type(error).__name__}: {str(error)[:200]}")
            torch.cuda.synchronize()
            return None


def time_events(action, replays, warmups):
    for _ in range(warmups):
        action()
    torch.cuda.synchronize()
    pairs = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(replays)]
    for start, end in pairs:
        start.record()
        action()
        end.record()
    torch.cuda.synchronize()
    return [start.elapsed_time(end) for start, end in pairs]


def time_wall(action, replays, warmups):
    times = []
    for index in range(replays + warmups):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        action()
        torch.cuda.synchronize()
        if index >= warmups:
            times.append((time.perf_counter() - begin) * 1e3)
    return times


def time_graph(action, repeats_inside=1, budget_ms=400.0):
    """Captures `action` and times replays; `action(i)` is called repeats_inside times so that inputs can rotate."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        action(0)
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for index in range(repeats_inside):
            action(index)
    first = time_events(graph.replay, 1, 1)[0]
    replays = max(5, min(20, int(budget_ms / max(first, 1e-3))))
    times = time_events(graph.replay, replays, 3 if replays < 20 else 5)
    graph.reset()
    return [value / repeats_inside for value in times]


def random_fp8(rows, columns):
    return (torch.randn(rows, columns, device="cuda", dtype=BF16) * 0.05).to(FP8)


def linear(x, weight, scale):
    if weight.dtype == FP8:
        return torch._scaled_mm(x, weight.t(), scale_a=scale, scale_b=scale, out_dtype=BF16, use_fast_accum=True)
    return torch.mm(x, weight.t())


def decode_attention(q, k_pages, v_pages, table, lengths, max_context, kv_heads):
    batch = q.shape[0]
    group = q.shape[1] // kv_heads
    pages = math.ceil(max_context / PAGE_TOKENS)
    # Enough programs to fill 132 multiprocessors a few times over, never more splits than pages.
    splits = max(1, min(pages, 64, math.ceil(132 * 4 / (batch * kv_heads))))
    pages_per_split = math.ceil(pages / splits)
    splits = math.ceil(pages / pages_per_split)
    partial = torch.empty(batch * kv_heads * splits * group * HEAD_DIM, device="cuda", dtype=torch.float32)
    stats = torch.empty(batch * kv_heads * splits * group * 2, device="cuda", dtype=torch.float32)
    out = torch.empty(batch, q.shape[1], HEAD_DIM, device="cuda", dtype=BF16)
    decode_split_kernel[(batch, kv_heads, splits)](
        q, k_pages, v_pages, table, lengths, partial, stats, table.shape[1], kv_heads, splits, pages_per_split,
        HEAD_DIM ** -0.5, GROUP=group, ROWS=16, PAGE=PAGE_TOKENS, DIM=HEAD_DIM, num_warps=4, num_stages=3)
    decode_merge_kernel[(batch * kv_heads, group)](
        partial, stats, out, splits, GROUP=group, DIM=HEAD_DIM, SPLITS=triton.next_power_of_2(splits), num_warps=2)
    return out


def prefill_attention(q, k, v):
    """Causal attention of new tokens over cached and new ones (q: heads, new, dim; k, v: KV heads, all, dim)."""
    return torch.ops.aten._scaled_dot_product_flash_attention(
        q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0), 0.0, True, False, scale=HEAD_DIM ** -0.5)[0][0]


class Stack:
    """A decoder of one model's shapes with random weights and a paged KV cache."""

    def __init__(self, name, weights, layers=None, cache_tokens=1 << 20):
        measured, self.model_layers, self.hidden, self.q_heads, self.kv_heads, self.ffn, self.vocab = STACKS[name]
        self.name = name
        self.layers = layers or measured
        self.weights = weights
        self.act = FP8 if weights == "fp8" else BF16
        make = random_fp8 if weights == "fp8" else (
            lambda rows, columns: torch.randn(rows, columns, device="cuda", dtype=BF16) * 0.02)
        qkv = (self.q_heads + 2 * self.kv_heads) * HEAD_DIM
        self.blocks = [(make(qkv, self.hidden), make(self.hidden, self.q_heads * HEAD_DIM),
                        make(2 * self.ffn, self.hidden), make(self.hidden, self.ffn)) for _ in range(self.layers)]
        self.norm = torch.rand(self.hidden, device="cuda", dtype=BF16)
        self.head = torch.randn(self.vocab, self.hidden, device="cuda", dtype=BF16) * 0.02
        self.scale = torch.tensor(1.0, device="cuda")
        self.pages = cache_tokens // PAGE_TOKENS
        shape = (self.pages * PAGE_TOKENS, self.kv_heads, HEAD_DIM)
        # Each layer has its own cache, as in an engine; otherwise the L2 would serve the second layer.
        self.k_cache = [torch.randn(shape, device="cuda", dtype=BF16) for _ in range(self.layers)]
        self.v_cache = [torch.randn(shape, device="cuda", dtype=BF16) for _ in range(self.layers)]

    def norm_into(self, x, residual):
        out = torch.empty(x.shape, device="cuda", dtype=self.act)
        rms_norm_kernel[(x.shape[0],)](x, residual, self.norm, out, self.hidden,
                                       BLOCK=triton.next_power_of_2(self.hidden), num_warps=8)
        return out

    def prepare(self, new, cached, batch, context):
        """Inputs of one step: a prefill chunk of `new` on `cached` tokens and `batch` decodes at `context` tokens."""
        tokens = new + batch
        pages_each = math.ceil((context + 1) / PAGE_TOKENS)
        chunk_pages = math.ceil((new + cached) / PAGE_TOKENS)
        if batch * pages_each + chunk_pages > self.pages:
            raise ValueError("the step does not fit the cache")
        order = torch.randperm(self.pages - chunk_pages, device="cuda")[: batch * pages_each] + chunk_pages
        table = order.view(batch, pages_each).to(torch.int32) if batch else None
        positions = torch.cat([torch.arange(cached, cached + new, device="cuda"),
                               torch.full((batch,), context - 1, device="cuda")]).to(torch.int32)
        decode_slots = (table[:, (context - 1) // PAGE_TOKENS].long() * PAGE_TOKENS + (context - 1) % PAGE_TOKENS
                        if batch else torch.empty(0, device="cuda", dtype=torch.long))
        slots = torch.cat([torch.arange(cached, cached + new, device="cuda"), decode_slots])
        lengths = torch.full((batch,), context, device="cuda", dtype=torch.int32)
        return {"new": new, "all": new + cached, "batch": batch, "context": context, "table": table,
                "positions": positions, "slots": slots, "lengths": lengths,
                "hidden": torch.randn(tokens, self.hidden, device="cuda", dtype=BF16)}

    def step(self, s):
        new, batch = s["new"], s["batch"]
        tokens = new + batch
        residual = torch.zeros_like(s["hidden"])
        x = s["hidden"]
        for layer in range(self.layers):
            w_qkv, w_out, w_up, w_down = self.blocks[layer]
            qkv = linear(self.norm_into(x, residual), w_qkv, self.scale)
            q = torch.empty(tokens, self.q_heads, HEAD_DIM, device="cuda", dtype=BF16)
            k_cache, v_cache = self.k_cache[layer], self.v_cache[layer]
            rotate_kernel[(tokens, self.q_heads + 2 * self.kv_heads)](
                qkv, q, k_cache, v_cache, s["positions"], s["slots"], self.q_heads, self.kv_heads,
                self.kv_heads * HEAD_DIM, HEAD_DIM, HALF=HEAD_DIM // 2, num_warps=1)
            parts = []
            if new:
                k = k_cache[: s["all"]].transpose(0, 1)
                v = v_cache[: s["all"]].transpose(0, 1)
                parts.append(prefill_attention(q[:new].transpose(0, 1), k, v).transpose(0, 1).reshape(new, -1))
            if batch:
                parts.append(decode_attention(q[new:], k_cache, v_cache, s["table"], s["lengths"], s["context"],
                                              self.kv_heads).view(batch, -1))
            mixed = parts[0] if len(parts) == 1 else torch.cat(parts)
            x = linear(mixed.to(self.act), w_out, self.scale)
            up = linear(self.norm_into(x, residual), w_up, self.scale)
            gated = torch.empty(tokens, self.ffn, device="cuda", dtype=self.act)
            silu_mul_kernel[(tokens, triton.cdiv(self.ffn, 2048))](up, gated, self.ffn, BLOCK=2048, num_warps=4)
            x = linear(gated, w_down, self.scale)
        last = torch.cat([x[new - 1: new], x[new:]]) if new and batch else (x[new - 1:] if new else x)
        return torch.mm(last, self.head.t()).argmax(dim=-1)


def block_ceilings(run):
    size = 1 << (28 if run.quick else 32)
    source = torch.empty(size, device="cuda", dtype=torch.uint8).random_()
    target = torch.empty_like(source)
    run.add(time_events(lambda: target.copy_(source), 20, 5), block="A", kind="copy", mode="eager", bytes=2 * size)
    del source, target
    a = torch.randn(8192, 8192, device="cuda", dtype=BF16)
    b = torch.randn(8192, 8192, device="cuda", dtype=BF16)
    run.add(time_events(lambda: torch.mm(a, b), 20, 5), block="A", kind="matmul", weights="bf16", mode="eager",
            gemm_m=8192, gemm_n=8192, gemm_k=8192)
    a8, b8, one = a.to(FP8), b.to(FP8), torch.tensor(1.0, device="cuda")
    run.attempt("A fp8", lambda: run.add(
        time_events(lambda: linear(a8, b8, one), 20, 5), block="A", kind="matmul", weights="fp8", mode="eager",
        gemm_m=8192, gemm_n=8192, gemm_k=8192))
    del a, b, a8, b8
    for kilobytes in (64, 256, 1024, 4096, 16384, 65536):
        host = torch.empty(kilobytes * 1024, dtype=torch.uint8).pin_memory()
        device = torch.empty(kilobytes * 1024, device="cuda", dtype=torch.uint8)
        for kind, action in (("host-to-device", lambda: device.copy_(host, non_blocking=True)),
                             ("device-to-host", lambda: host.copy_(device, non_blocking=True))):
            run.add(time_events(action, 10, 3), block="A", kind=kind, mode="single", bytes=kilobytes * 1024)
            batch = time_events(lambda: [action() for _ in range(64)], 3, 1)
            run.add([value / 64 for value in batch], block="A", kind=kind, mode="batched-64", bytes=kilobytes * 1024)
    tiny = torch.zeros(32, device="cuda")
    run.add([value / 100 for value in time_wall(lambda: [tiny.add_(1) for _ in range(100)], 10, 3)],
            block="A", kind="launch", mode="eager")
    run.add([value for value in time_graph(lambda index: tiny.add_(1), 100)], block="A", kind="launch", mode="graph")


GEMM_SHAPES = [
    ("llama-3.1-8b", "bf16", [(6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336)]),
    ("qwen3-8b", "bf16", [(24576, 4096), (4096, 12288)]),
    ("llama-3.1-70b", "fp8", [(10240, 8192), (8192, 8192), (57344, 8192), (8192, 28672)]),
    ("llama-3.1-70b-tp2", "fp8", [(5120, 8192), (8192, 4096), (28672, 8192), (8192, 14336)]),
    ("qwen3-32b", "fp8", [(10240, 5120), (5120, 8192), (51200, 5120), (5120, 25600)]),
]
GEMM_ROWS = [1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192]


def block_gemm(run, until):
    one = torch.tensor(1.0, device="cuda")
    for model, weights, shapes in GEMM_SHAPES:
        for n, k in shapes:
            size = n * k * (1 if weights == "fp8" else 2)
            sets = max(4, math.ceil(400e6 / size))  # far beyond the 60 MB L2
            w = [random_fp8(n, k) if weights == "fp8" else torch.randn(n, k, device="cuda", dtype=BF16) * 0.02
                 for _ in range(min(sets, 16))]
            for m in GEMM_ROWS[:4] if run.quick else GEMM_ROWS:
                if not run.has_time(until):
                    return
                x = random_fp8(m, k) if weights == "fp8" else torch.randn(m, k, device="cuda", dtype=BF16)
                run.attempt(f"B {model} {m}x{n}x{k}", lambda: run.add(
                    time_graph(lambda index: linear(x, w[index % len(w)], one), len(w), 60.0),
                    block="B", kind="gemm", model=model, weights=weights, mode="graph", gemm_m=m, gemm_n=n, gemm_k=k))


def block_decode_attention(run, until):
    for q_heads in (32, 64):
        for kv in ("bf16", "fp8") if q_heads == 64 else ("bf16",):
            tokens = 1 << 21
            dtype = FP8 if kv == "fp8" else BF16
            k_pages = torch.randn(tokens, 8, HEAD_DIM, device="cuda", dtype=BF16).to(dtype)
            v_pages = torch.randn(tokens, 8, HEAD_DIM, device="cuda", dtype=BF16).to(dtype)

            def measure(lengths, label):
                batch = len(lengths)
                longest = max(lengths)
                pages_each = math.ceil(longest / PAGE_TOKENS)
                per_set = batch * pages_each
                sets = max(1, min(8, (tokens // PAGE_TOKENS) // per_set))
                order = torch.randperm(tokens // PAGE_TOKENS, device="cuda").to(torch.int32)
                tables = [order[i * per_set:(i + 1) * per_set].view(batch, pages_each) for i in range(sets)]
                length = torch.tensor(lengths, device="cuda", dtype=torch.int32)
                q = torch.randn(batch, q_heads, HEAD_DIM, device="cuda", dtype=BF16)
                run.add(time_graph(lambda i: decode_attention(q, k_pages, v_pages, tables[i % sets], length, longest, 8),
                                   max(sets, 2), 40.0),
                        block="C", kind=label, model=f"heads-{q_heads}-8", kv=kv, mode="graph", layers=1,
                        decode_batch=batch, decode_context_sum=sum(lengths))

            for batch in (1, 2, 4, 8, 16, 32, 48, 64, 96, 128)[: 2 if run.quick else 10]:
                for context in (128, 512, 1024, 2048, 4096, 8192, 16384):
                    if batch * context > tokens or not run.has_time(until):
                        continue
                    run.attempt(f"C {batch}x{context}", lambda: measure([context] * batch, "decode-attention"))
            generator = torch.Generator().manual_seed(7)
            for batch in (8, 16, 32, 48, 64) if not run.quick else ():
                for total in (batch * 2048, batch * 4096):
                    if not run.has_time(until):
                        continue
                    raw = torch.exp(torch.randn(batch, generator=generator))
                    lengths = [max(1, int(total * float(value / raw.sum()))) for value in raw]
                    run.attempt(f"C skew {batch}", lambda: measure(lengths, "decode-attention-skewed"))
            del k_pages, v_pages


def block_prefill_attention(run, until):
    for q_heads in (32, 64):
        for new in (64, 128, 256, 512, 1024, 2048, 4096, 8192)[: 2 if run.quick else 8]:
            for cached in (0, 512, 1024, 2048, 4096, 8192, 16384, 32768):
                if not run.has_time(until):
                    return
                q = torch.randn(q_heads, new, HEAD_DIM, device="cuda", dtype=BF16)
                k = torch.randn(new + cached, 8, HEAD_DIM, device="cuda", dtype=BF16).transpose(0, 1)
                v = torch.randn(new + cached, 8, HEAD_DIM, device="cuda", dtype=BF16).transpose(0, 1)
                run.attempt(f"D {new} on {cached}", lambda: run.add(
                    time_graph(lambda index: prefill_attention(q, k, v), 2, 60.0), block="D", kind="prefill-attention",
                    model=f"heads-{q_heads}-8", kv="bf16", mode="graph", layers=1, prefill_new=new,
                    prefill_cached=cached))


def measure_step(run, stack, block, kind, new, cached, batch, context, mode="graph", budget_ms=250.0):
    def action():
        inputs = stack.prepare(new, cached, batch, context)
        times = (time_wall(lambda: stack.step(inputs), 6, 2) if mode == "eager"
                 else time_graph(lambda index: stack.step(inputs), 1, budget_ms))
        return run.add(times, block=block, kind=kind, model=stack.name, weights=stack.weights, kv="bf16", mode=mode,
                       layers=stack.layers, prefill_new=new, prefill_cached=cached, decode_batch=batch,
                       decode_context_sum=batch * context)
    return run.attempt(f"{block} {stack.name} {kind} {new} {cached} {batch} {context} {mode}", action)


def block_stack(run, name, until, tail=None):
    stack = Stack(name, "bf16", layers=2 if run.quick else None, cache_tokens=(4 if run.quick else 9) << 16)
    contexts = (512, 2048) if run.quick else (512, 2048, 4096, 8192)
    for batch in (1, 4) if run.quick else (1, 4, 8, 16, 32, 64, 128):
        for context in contexts:
            if batch * (context + PAGE_TOKENS) > stack.pages * PAGE_TOKENS or not run.has_time(until):
                continue
            measure_step(run, stack, "E", "decode", 0, 0, batch, context)
    for new in (128, 512, 2048, 3500, 4096, 8192):
        for cached in (0, 2048, 8192):
            if run.has_time(until):
                measure_step(run, stack, "E", "prefill", new, cached, 0, 0)
    for new in (256, 512, 2048, 4096, 8192):
        for cached in (0, 4096):
            for batch in (8, 32, 64):
                for context in (2048, 4096):
                    if run.has_time(until) and not (run.quick and new > 512):
                        measure_step(run, stack, "E", "mixed", new, cached, batch, context)
    for batch in (1, 4) if run.quick else (1, 8, 32, 64):
        for context in contexts[:2] if run.quick else (512, 4096):
            if run.has_time(until):
                measure_step(run, stack, "E", "decode", 0, 0, batch, context, mode="eager")
    if tail is not None:
        tail(run, stack)
    del stack
    torch.cuda.empty_cache()


def block_stability(run, stack):
    points = [("decode", 0, 0, b, c) for b in (1, 8, 32, 64) for c in (512, 4096)]
    points += [("prefill", n, c, 0, 0) for n in (512, 2048, 4096) for c in (0, 2048)]
    for kind, new, cached, batch, context in points:
        if run.has_time():
            measure_step(run, stack, "G", kind, new, cached, batch, context)
    for kind, new, batch, context in (("prefill", 8192, 0, 0), ("decode", 0, 64, 4096)):
        seconds = 1 if run.quick else 12
        if not run.has_time(run.stop_seconds - seconds - 5):
            return
        inputs = run.attempt(f"G sustained {kind}", lambda: stack.prepare(new, 0, batch, context))
        if inputs is None:
            continue
        stack.step(inputs)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            stack.step(inputs)
        end = time.monotonic() + seconds
        times = []
        while time.monotonic() < end:
            times += time_events(graph.replay, 10, 0)
        run.add(times[len(times) // 2:], block="G", kind=f"sustained-{kind}", model=stack.name, weights=stack.weights,
                kv="bf16", mode="graph", layers=stack.layers, prefill_new=new, prefill_cached=0, decode_batch=batch,
                decode_context_sum=batch * context)
        graph.reset()


def block_large(run, until):
    stack = Stack("llama-3.1-70b", "fp8", layers=2 if run.quick else None, cache_tokens=1 << (18 if run.quick else 20))
    for batch in (1, 5) if run.quick else (1, 5, 8, 16, 20, 30, 40, 60, 64):
        for context in (2000, 4500, 8192):
            if run.has_time(until):
                measure_step(run, stack, "F", "decode", 0, 0, batch, context)
    for new in (512, 1000, 1750, 3500, 8192):
        for cached in (0, 3000):
            if run.has_time(until):
                measure_step(run, stack, "F", "prefill", new, cached, 0, 0)
    for new in (512, 2048, 8192):
        for batch in (20, 40, 60):
            if run.has_time(until) and not run.quick:
                measure_step(run, stack, "F", "mixed", new, 0, batch, 4500)
    del stack
    torch.cuda.empty_cache()
    if run.quick or not run.has_time(until):
        return
    twice = Stack("llama-3.1-70b", "fp8", layers=16, cache_tokens=1 << 19)
    measure_step(run, twice, "F", "decode", 0, 0, 40, 4500)
    measure_step(run, twice, "F", "prefill", 3500, 0, 0, 0)
    measure_step(run, twice, "F", "mixed", 2048, 0, 40, 4500)
    del twice
    torch.cuda.empty_cache()


def check_kernels():
    """Compares both attention paths with a plain float32 reference before anything is timed."""
    worst = 0.0
    for kv_dtype in (BF16, FP8):
        lengths = [70, 129, 1]
        k = torch.randn(64 * PAGE_TOKENS, 8, HEAD_DIM, device="cuda", dtype=BF16).to(kv_dtype)
        v = torch.randn(64 * PAGE_TOKENS, 8, HEAD_DIM, device="cuda", dtype=BF16).to(kv_dtype)
        table = torch.randperm(64, device="cuda")[:9].view(3, 3).to(torch.int32)
        q = torch.randn(3, 32, HEAD_DIM, device="cuda", dtype=BF16)
        out = decode_attention(q, k, v, table, torch.tensor(lengths, device="cuda", dtype=torch.int32), 129, 8)
        for i, length in enumerate(lengths):
            slots = torch.cat([torch.arange(PAGE_TOKENS, device="cuda") + int(p) * PAGE_TOKENS for p in table[i]])[:length]
            keys = k[slots].float().repeat_interleave(4, dim=1)
            values = v[slots].float().repeat_interleave(4, dim=1)
            scores = torch.einsum("hd,shd->hs", q[i].float(), keys) * HEAD_DIM ** -0.5
            want = torch.einsum("hs,shd->hd", scores.softmax(dim=-1), values)
            worst = max(worst, float((out[i].float() - want).norm() / want.norm()))
    q = torch.randn(32, 100, HEAD_DIM, device="cuda", dtype=BF16)
    k = torch.randn(8, 164, HEAD_DIM, device="cuda", dtype=BF16)
    v = torch.randn(8, 164, HEAD_DIM, device="cuda", dtype=BF16)
    mask = torch.ones(100, 164, device="cuda", dtype=torch.bool).tril(64)
    scores = torch.einsum("hqd,hkd->hqk", q.float(), k.float().repeat_interleave(4, 0)) * HEAD_DIM ** -0.5
    want = torch.einsum("hqk,hkd->hqd", scores.masked_fill(~mask, -math.inf).softmax(-1),
                        v.float().repeat_interleave(4, 0))
    got = prefill_attention(q, k, v).float()
    worst = max(worst, float((got - want).norm() / want.norm()))
    if not worst < 0.02:
        raise SystemExit(f"an attention kernel is wrong: relative error {worst:.4f}")
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="measured", help="folder for the files written")
    parser.add_argument("--stop-seconds", type=float, default=540.0)
    parser.add_argument("--quick", action="store_true", help="tiny sizes: a test of the script, not a measurement")
    options = parser.parse_args()
    run = Run(options.out, options.stop_seconds, options.quick)
    telemetry = subprocess.Popen(
        ["nvidia-smi", "--query-gpu=timestamp,clocks.sm,clocks.mem,power.draw,temperature.gpu", "--format=csv",
         "-lms", "1000"], stdout=open(os.path.join(options.out, "telemetry.csv"), "w"))
    torch.manual_seed(1)
    stop = options.stop_seconds
    finished = {}
    try:
        finished["check"] = check_kernels()
        for name, action in (
            ("A", lambda: block_ceilings(run)),
            ("E llama-3.1-8b", lambda: block_stack(run, "llama-3.1-8b", stop * 0.30)),
            ("F", lambda: block_large(run, stop * 0.45)),
            ("E qwen3-8b and G", lambda: block_stack(run, "qwen3-8b", stop * 0.70, block_stability)),
            ("B", lambda: block_gemm(run, stop * 0.85)),
            ("C", lambda: block_decode_attention(run, stop * 0.95)),
            ("D", lambda: block_prefill_attention(run, stop)),
        ):
            if run.has_time():
                run.attempt(name, action)
                torch.cuda.empty_cache()
            finished[name] = round(run.elapsed(), 1)
            print(f"{name} done at {run.elapsed():.0f} s, {run.index} rows", flush=True)
    finally:
        telemetry.terminate()
        query = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"],
                               capture_output=True, text=True, check=False).stdout.strip()
        facts = {"card": query, "date": time.strftime("%Y-%m-%d", time.gmtime()), "torch": torch.__version__,
                 "triton": triton.__version__, "cuda": torch.version.cuda, "rows": run.index, "quick": options.quick,
                 "seconds": round(run.elapsed(), 1), "finished": finished, "failures": run.failures}
        with open(os.path.join(options.out, "run.json"), "w") as file:
            json.dump(facts, file, indent=2)
        print(json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
