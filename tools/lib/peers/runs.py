# SPDX-License-Identifier: MIT
"""One run of ours or of a peer: a process with a time limit, and the figures that it printed."""
import json
import os
import re
import signal
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PEERS_PYTHON = ROOT / ".deps/peers/bin/python"
TRAIN_PEER = ROOT / "tests/peer/train_peer.py"
CIUIC = ROOT / "build/bin/ciuic"
ALL_REDUCE = ROOT / "build/tests/all_reduce_benchmark"
TEXT = ROOT / "data/bible.txt"
ROWS, SEQUENCE = 4, 256  # of each rank in a step
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}


class RunFailed(Exception):
    """What a child said last, or that it ran out of time."""


def run(command, limit_seconds, **variables):
    """stdout of a command that ends well in time. All that it started goes when it does not."""
    env = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")} | variables
    child = subprocess.Popen([str(c) for c in command], cwd=ROOT, env=env, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    try:
        out, err = child.communicate(timeout=limit_seconds)
    except subprocess.TimeoutExpired:
        raise RunFailed(f"not done after {limit_seconds} s") from None
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
    if child.returncode != 0:
        last = (err.strip().splitlines() or ["no output"])[-1]
        raise RunFailed(f"exit {child.returncode}: {last[:160]}")
    return out


def config_of(ours):
    return f"""# One micro-batch a step; what a peer does not do is off.
[run]
name = "compare"
output = "compare"
steps = 100000
ranks = {ours.world}
threads = {ours.threads}
[plugins]
path = ["{ROOT}/build/plugins"]
[model]
preset = "{ours.preset}"
[data]
train = ["{TEXT}"]
sequence_tokens = {SEQUENCE}
[batch_scheduler]
plugin = "fixed"
[batch_scheduler.fixed]
sequences = {ROWS * ours.world}
micro_sequences = {ROWS}
[sharding]
plugin = "{ours.sharding}"
[optimizer]
plugin = "adamw"
gradient_clip_norm = 1.0
[precision]
plugin = "{ours.dtype}"
[schedule]
learning_rate = 3e-4
"""


def run_ours(ours, folder, warmup, steps, limit_seconds):
    file = Path(folder) / "ours.toml"
    file.write_text(config_of(ours))
    found = json.loads(run([CIUIC, "bench", "step", file, "--pin", "--format", "json",
                            "--warmup", warmup, "--steps", steps], limit_seconds,
                           TMPDIR=str(folder)))  # what a bench that is cut short leaves goes too
    return {"tokens_per_second": found["tokens_per_second"]["median"],
            "peak_rss_bytes": found["peak_rss_bytes"]["sum"],
            "startup_seconds": found["startup"]["seconds"],
            "fraction_of_gemm_rate": found["model"]["fraction_of_gemm_rate"],
            "profile": found}


def run_peer(peer, ours, warmup, steps, limit_seconds):
    if not PEERS_PYTHON.exists():
        raise RunFailed("no .deps/peers: run tools/setup --peers")
    if "deepspeed" in peer.options and not (PEERS_PYTHON.parents[1] / "deepspeed.txt").exists():
        raise RunFailed("no DeepSpeed: run tools/setup --peers --deepspeed")
    out = run([PEERS_PYTHON, TRAIN_PEER, "--preset", ours.preset, "--dtype", ours.dtype,
               "--world", ours.world, "--threads", ours.threads, "--data", TEXT, "--rows", ROWS,
               "--seq", SEQUENCE, "--warmup", warmup, "--steps", steps, *peer.options], limit_seconds)
    lines = [line for line in out.splitlines() if line.startswith("{")]
    if not lines:
        raise RunFailed("it printed no figures")
    return json.loads(lines[-1])


def run_all_reduce(limit_seconds):
    """{(plugin, ranks, bytes, memory): seconds}, by the names of Google Benchmark's cases."""
    found = {}
    for case in json.loads(run([ALL_REDUCE, "--benchmark_format=json"], limit_seconds))["benchmarks"]:
        name = re.match(r"(\d+) ranks/(\d+) KiB/(\w+)( memory_alloc)?", case["name"])
        if name and case.get("run_type", "iteration") == "iteration":
            memory = "shared" if name[4] else "ordinary"
            seconds = case["real_time"] * SECONDS[case["time_unit"]]
            found[name[3], int(name[1]), int(name[2]) << 10, memory] = seconds
    return found
