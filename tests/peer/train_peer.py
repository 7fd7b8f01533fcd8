#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains one of our presets with one of today's Python stacks on the CPU; prints one JSON line.

What tools/compare_peers holds ciuic against: transformers' DeepSeek-V3 under PyTorch's DDP or FSDP2
or DeepSpeed's ZeRO, each as its documentation says. The row b of rank r in step s has as input the
text's bytes [i * seq, (i + 1) * seq), i = (s * world + r) * rows + b, and as targets the bytes one
further on. A step = zero_grad, forward, backward, clip, AdamW, reading the loss.
"""
import argparse
import contextlib
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--stack", choices=("ddp", "fsdp2", "deepspeed"), default="ddp")
    p.add_argument("--zero", type=int, choices=range(4), default=0, help="DeepSpeed's stage")
    p.add_argument("--world", type=int, default=1)
    p.add_argument("--threads", type=int, default=1, help="of each rank, each on a core of its own")
    p.add_argument("--dtype", choices=("fp32", "bf16"), default="fp32",
                   help="bf16: fp32 master weights, by each stack's own means")
    p.add_argument("--preset", default="tiny")
    p.add_argument("--data", default=str(ROOT / "data" / "bible.txt"))
    p.add_argument("--steps", type=int, default=5, help="timed ones")
    p.add_argument("--warmup", type=int, default=2)
    p.add_argument("--rows", type=int, default=4, help="of a rank in a step")
    p.add_argument("--seq", type=int, default=256)
    p.add_argument("--attn", choices=("sdpa", "sdpa-padded"), default="sdpa",
                   help="sdpa-padded: values as wide as queries, so that the fused kernel takes them")
    p.add_argument("--fused", action="store_true", help="AdamW(fused=True); the default loops")
    p.add_argument("--compile", action="store_true", help="torch.compile with inductor")
    return p.parse_args()


def launch(a):
    """The ranks as plain processes with torchrun's environment; the first failure ends all."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    env = {**os.environ, "WORLD_SIZE": str(a.world), "LOCAL_WORLD_SIZE": str(a.world),
           "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
           "OMP_NUM_THREADS": str(a.threads), "GLOO_SOCKET_IFNAME": "lo", "DS_ACCELERATOR": "cpu",
           # What DeepSpeed compiles lies in the environment that it is installed in.
           "PATH": f"{sys.prefix}/bin:{os.environ['PATH']}",
           "TORCH_EXTENSIONS_DIR": f"{sys.prefix}/torch_extensions", "PEER_START": str(process_start()), "HF_HUB_OFFLINE": "1",
           "TRANSFORMERS_VERBOSITY": "error", "DS_LOG_LEVEL": "error"}
    ranks = [subprocess.Popen([sys.executable, *sys.argv],
                              env={**env, "RANK": str(r), "LOCAL_RANK": str(r)})
             for r in range(a.world)]
    while any(r.poll() is None for r in ranks):
        if any(r.poll() for r in ranks):
            for r in ranks:
                r.kill()
        time.sleep(0.02)
    sys.exit(max(abs(r.returncode) for r in ranks))


def process_start():
    """Of this process, in seconds of CLOCK_BOOTTIME, as the kernel tells it (to 10 ms)."""
    fields = pathlib.Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


def pin(rank, threads):
    """To cores of this rank's own, before any library starts a thread."""
    cores = sorted(os.sched_getaffinity(0))
    own = cores[rank * threads:(rank + 1) * threads]
    if len(own) == threads:
        os.sched_setaffinity(0, own)


def batches(a, rank):
    import torch
    text = torch.frombuffer(bytearray(pathlib.Path(a.data).read_bytes()), dtype=torch.uint8)
    rows = text.unfold(0, a.seq + 1, a.seq)
    step = 0
    while True:
        first = (step * a.world + rank) * a.rows
        batch = rows[torch.arange(first, first + a.rows) % len(rows)].long()
        yield batch[:, :-1].contiguous(), batch[:, 1:].contiguous()
        step += 1


def adamw(a, model):
    import torch
    return torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), eps=1e-8,
                             weight_decay=0.1, fused=True if a.fused else None)


def loss_of(model, batch):
    tokens, targets = batch
    return model(input_ids=tokens, labels=tokens, shift_labels=targets, use_cache=False).loss


def padded_attention(module, q, k, v, mask, dropout=0.0, scaling=None, **_):
    import torch.nn.functional as F
    wide = F.pad(v, (0, q.shape[-1] - v.shape[-1]))
    out = F.scaled_dot_product_attention(q, k, wide, scale=scaling, is_causal=True)
    return out[..., :v.shape[-1]].transpose(1, 2).contiguous(), None


def ddp(a, model):
    import torch
    if a.compile:
        model.compile()
    model = torch.nn.parallel.DistributedDataParallel(model)
    cast = (lambda: torch.autocast("cpu", torch.bfloat16)) if a.dtype == "bf16" \
        else contextlib.nullcontext
    return model, cast


def fsdp2(a, model):
    import torch
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32) \
        if a.dtype == "bf16" else MixedPrecisionPolicy()
    mesh = torch.distributed.init_device_mesh("cpu", (a.world,))
    for layer in model.model.layers:
        if a.compile:
            layer.compile()
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    return model, contextlib.nullcontext


def torch_step(a, model):
    import torch
    model, cast = (ddp if a.stack == "ddp" else fsdp2)(a, model)
    optimizer = adamw(a, model)

    def step(batch):
        optimizer.zero_grad()
        with cast():
            loss = loss_of(model, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()
    return step


def deepspeed_step(a, model):
    import deepspeed
    if a.compile:
        model.compile()
    engine, *_ = deepspeed.initialize(model=model, optimizer=adamw(a, model), config={
        "train_micro_batch_size_per_gpu": a.rows, "gradient_accumulation_steps": 1,
        "gradient_clipping": 1.0, "bf16": {"enabled": a.dtype == "bf16"},
        "zero_allow_untested_optimizer": True, "zero_optimization": {"stage": a.zero},
        "zero_force_ds_cpu_optimizer": False, "steps_per_print": 10 ** 9,
        "wall_clock_breakdown": False})

    def step(batch):
        loss = loss_of(engine, batch)
        engine.backward(loss)
        engine.step()
        return loss.item()
    return step


def model_of(a):
    import torch
    import transformers
    torch.manual_seed(0)
    config = transformers.DeepseekV3Config.from_json_file(
        ROOT / "configs" / "presets" / f"{a.preset}.json")
    transformers.AttentionInterface.register("sdpa-padded", padded_attention)
    model = transformers.AutoModelForCausalLM.from_config(
        config, attn_implementation=a.attn, experts_implementation="grouped_mm",
        dtype=torch.float32)
    return model.train(), config


def flops_per_token(model, c, seq):
    """6 per active parameter, the input embedding left out, and causal attention."""
    everything = sum(p.numel() for p in model.parameters())
    experts = sum(p.numel() for name, p in model.named_parameters() if ".experts." in name)
    active = everything - experts + experts * c.num_experts_per_tok // c.n_routed_experts
    active -= c.vocab_size * c.hidden_size
    heads = c.num_attention_heads * (c.qk_nope_head_dim + c.qk_rope_head_dim + c.v_head_dim)
    return 6 * active + 3 * c.num_hidden_layers * seq * heads


def peak_rss():
    status = pathlib.Path("/proc/self/status").read_text()
    return 1024 * int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])


def work(a):
    rank, start = int(os.environ["RANK"]), float(os.environ["PEER_START"])
    pin(rank, a.threads)
    import torch
    import torch.distributed as dist
    torch.set_num_threads(a.threads)
    if a.stack == "deepspeed":
        import deepspeed
        deepspeed.init_distributed("gloo", verbose=False)
    else:
        dist.init_process_group("gloo")
    model, config = model_of(a)
    flops = flops_per_token(model, config, a.seq)
    step = (deepspeed_step if a.stack == "deepspeed" else torch_step)(a, model)
    data, seconds = batches(a, rank), []
    for i in range(a.warmup + a.steps):
        batch = next(data)
        begin = time.perf_counter()
        loss = step(batch)
        seconds.append(time.perf_counter() - begin)
        if i == 0:
            startup = time.clock_gettime(time.CLOCK_BOOTTIME) - start
    ranks = [None] * a.world
    dist.all_gather_object(ranks, (loss, peak_rss()))
    if rank == 0:
        median = statistics.median(seconds[a.warmup:])
        tokens = a.world * a.rows * a.seq
        print(json.dumps({
            "tokens_per_second": tokens / median, "step_seconds": median,
            "flops_per_second": tokens * flops / median, "startup_seconds": startup,
            "peak_rss_bytes": sum(peak for _, peak in ranks),
            "loss": sum(loss for loss, _ in ranks) / a.world}), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    options = arguments()
    if "RANK" in os.environ:
        work(options)
    else:
        launch(options)
