# SPDX-License-Identifier: MIT
"""Every way of sharing out state, in every number format, with and without accumulation: the losses and the final
state of `ddp`. By default a few places of the matrix; CIUIC_MATRIX=full (label slow) walks all of it."""
import math
import os

import pytest

import safetensors_file

STEPS = 30
IS_FULL = os.environ.get("CIUIC_MATRIX") == "full"

# How each way is asked for, on 4 ranks.
WAYS = {
    "zero1": ["sharding.plugin=zero1"],
    "zero2": ["sharding.plugin=zero2"],
    "zero3": ["sharding.plugin=zero3"],
    "hybrid": ["sharding.plugin=zero3", "sharding.zero3.shard_ranks=2"],
    "expert2": ["sharding.plugin=ddp", "parallel.expert=2"],
    "expert4": ["sharding.plugin=ddp", "parallel.expert=4"],
    "expert2-zero3": ["sharding.plugin=zero3", "parallel.expert=2"],
}
# Relative differences allowed of losses for 3 and for 30 steps, and of the final weights. In fp32 only the order of
# sums differs. In the narrow formats a sum that differs in its last bit moves a value by a step of the format now and
# then: 2^-9 of it in bf16, 2^-12 in fp16; fp8's products see bf16 values.
BANDS = {
    "fp32": (1e-6, 1e-5, 1e-4),
    "fp16": (2e-4, 1e-3, 2e-3),
    "bf16": (1e-3, 4e-3, 1e-2),
    "fp8_block": (2e-3, 1e-2, 2e-2),
}
QUICK = [("zero1", "bf16", 4), ("zero2", "fp32", 4), ("zero3", "fp32", 1), ("hybrid", "fp16", 4), ("expert2-zero3", "fp32", 4),
         ("expert4", "fp8_block", 1)]
PLACES = [(w, p, a) for p in BANDS for a in (1, 4) for w in WAYS] if IS_FULL else QUICK

CHANGES = {"run.steps": STEPS, "schedule.learning_rate": 3e-4, "checkpoint.every": f"{STEPS} steps", "validation.every": "never",
           "model.num_hidden_layers": 4, "batch_scheduler.fixed.sequences": 16}


def train(work, name, precision, accumulation, sets):
    """The run's losses and its final weights, kept by name."""
    kept = work.__dict__.setdefault("kept", {})
    if name not in kept:
        sets = [f"run.output={name}", f"precision.plugin={precision}", f"batch_scheduler.fixed.micro_sequences={4 // accumulation}",
                *sets]
        work.train("--ranks", "4", *[f"--set={s}" for s in sets], timeout=240)
        result = work.run("checkpoint", "convert", name, f"{name}-folder", "--to", "safetensors", "--dtype", "fp32")
        assert result.code == 0, result
        weights = {}
        for file in (work / f"{name}-folder").glob("*.safetensors"):
            weights.update({key: values for key, (_, values) in safetensors_file.read(file).items()})
        kept[name] = work.metrics(name).losses, weights
    return kept[name]


def distance(one, other):
    """||one - other|| / ||other|| over all weights together."""
    assert one.keys() == other.keys()
    apart = sum(sum((a - b) ** 2 for a, b in zip(one[name], other[name])) for name in one)
    return math.sqrt(apart / sum(sum(b * b for b in other[name]) for name in other))


@pytest.fixture(scope="module")
def matrix(shared):
    shared.config(CHANGES)
    return shared


@pytest.mark.parametrize("way, precision, accumulation", PLACES)
def test_equal_to_ddp(matrix, way, precision, accumulation):
    soon, later, apart = BANDS[precision]
    ddp, weights = train(matrix, f"ddp-{precision}-{accumulation}", precision, accumulation, ["sharding.plugin=ddp"])
    losses, own = train(matrix, f"{way}-{precision}-{accumulation}", precision, accumulation, WAYS[way])
    assert len(losses) == STEPS and losses[-1] < losses[0]
    assert losses[:3] == pytest.approx(ddp[:3], rel=soon)
    assert losses == pytest.approx(ddp, rel=later)
    assert distance(own, weights) < apart
