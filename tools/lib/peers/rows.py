# SPDX-License-Identifier: MIT
"""What tools/compare_peers measures, and the bar of each row.

A match runs ours and its peers in turn; rows read a figure of each from the same runs. The bars
are those that version 0.2 set itself; docs/performance.md says what was reached.
"""
from dataclasses import dataclass, field

STEPS = {"tiny": (5, 20), "small": (2, 5), "medium": (2, 3)}  # to warm up, to time


@dataclass(frozen=True)
class Ours:
    preset: str
    dtype: str = "fp32"
    world: int = 1
    threads: int = 1
    sharding: str = "ddp"


@dataclass(frozen=True)
class Peer:
    """Options of tests/peer/train_peer.py besides those that it shares with ours."""
    options: tuple = ()


@dataclass(frozen=True)
class Row:
    """`figure` of ours over the peer's (of ours alone without a peer) against the bar."""
    title: str
    figure: str
    bar: float
    peer: str = ""
    at_most: bool = False  # the bar is a ceiling
    is_inverse: bool = False  # the peer's over ours: how many times sooner


@dataclass
class Match:
    ours: Ours
    peers: dict = field(default_factory=dict)
    rows: list = field(default_factory=list)


EAGER = Peer()
COMPILED = Peer(("--fused", "--attn", "sdpa-padded", "--compile"))
FSDP2 = Peer(("--stack", "fsdp2"))


def deepspeed(stage):
    return Peer(("--stack", "deepspeed", "--zero", str(stage)))


def speed(peer, bar):
    return Row("tokens/s", "tokens_per_second", bar, peer)


def memory(peer, bar):
    return Row("peak memory", "peak_rss_bytes", bar, peer, at_most=True)


def of_gemm(bar):
    return Row("model FLOPs over the GEMM rate", "fraction_of_gemm_rate", bar)


def one_rank():
    return [
        Match(Ours("small"), {"eager": EAGER, "compiled": COMPILED},
              [speed("eager", 1.3), speed("compiled", 1.13), of_gemm(0.75)]),
        Match(Ours("small", threads=2), {"eager": EAGER}, [speed("eager", 1.5)]),
        Match(Ours("small", "bf16"), {"eager": EAGER, "compiled": COMPILED},
              [speed("eager", 1.65), speed("compiled", 1.4), of_gemm(0.50)]),
        Match(Ours("tiny"), {"eager": EAGER}, [speed("eager", 1.8), of_gemm(0.60)]),
        Match(Ours("tiny", "bf16"), {"eager": EAGER}, [speed("eager", 2.0)]),
        Match(Ours("medium"), {}, [of_gemm(0.78)]),
        Match(Ours("medium", "bf16"), {}, [of_gemm(0.57)]),
    ]


def two_ranks():
    matches = [
        Match(Ours("small", world=2), {"eager": EAGER, "compiled": COMPILED},
              [speed("eager", 1.4), speed("compiled", 1.25), memory("eager", 0.55)]),
        Match(Ours("small", "bf16", world=2), {"eager": EAGER}, [memory("eager", 0.55)]),
    ]
    for dtype, first, third, ceiling in (("fp32", 1.65, 1.7, 0.42), ("bf16", 2.2, 2.4, 0.33)):
        def ours(stage, dtype=dtype):
            return Ours("small", dtype, world=2, sharding=stage)
        matches += [
            Match(ours("zero1"), {"deepspeed": deepspeed(1)}, [speed("deepspeed", first)]),
            Match(ours("zero2"), {"deepspeed": deepspeed(2)},
                  [speed("deepspeed", first), memory("deepspeed", ceiling)]),
            Match(ours("zero3"), {"deepspeed": deepspeed(3), "fsdp2": FSDP2},
                  [speed("deepspeed", third), speed("fsdp2", third),
                   memory("deepspeed", ceiling), memory("fsdp2", ceiling)]),
        ]
    return matches


def startup():
    title = "start to the end of the first step"
    return [Match(Ours("tiny", world=2), {"eager": EAGER, "deepspeed": deepspeed(2)},
                  [Row(title + ", s", "startup_seconds", 0.8, at_most=True),
                   Row(title, "startup_seconds", 5, "eager", is_inverse=True),
                   Row(title, "startup_seconds", 7, "deepspeed", is_inverse=True)])]


def matches():
    return one_rank() + two_ranks() + startup()


# Bars of shm against gloo by bytes: from ordinary memory, and from memory that the communicator gave.
ALL_REDUCE_BARS = {1 << 16: (10, None), 1 << 20: (4, None), 1 << 24: (3, 4.5), 1 << 26: (3, 4.5)}
ALL_REDUCE_RANKS = (2, 4)
