# SPDX-License-Identifier: MIT
"""The bias that balances experts (field bug B064): one update per step, whatever a step is made of; kept in checkpoints."""
import pytest

import safetensors_file

RATE = 0.001
CHANGES = {"run.steps": 1, "schedule.expert_bias_rate": RATE, "validation.every": "never", "validation.sequences": None}


def biases(work, step):
    shard, = (work / f"out/checkpoints/step-{step:08d}").glob("shard-00000-*.safetensors")
    found = {key: list(values) for key, (_, values) in safetensors_file.read(shard).items() if key.endswith("correction_bias")}
    assert found
    return found


@pytest.fixture(scope="module")
def after_one_step(shared):
    """In one micro-batch on one rank."""
    shared.train(changes={**CHANGES, "run.ranks": 1, "batch_scheduler.fixed.micro_sequences": 8})
    return biases(shared, 1)


def test_moves_once_by_the_rate(after_one_step):
    values = [value for bias in after_one_step.values() for value in bias]
    assert {round(value / RATE, 4) for value in values} <= {-1.0, 0.0, 1.0}
    assert any(value > 0 for value in values) and any(value < 0 for value in values)


@pytest.mark.parametrize("changes", [
    {"run.ranks": 1, "batch_scheduler.fixed.micro_sequences": 2},
    {"run.ranks": 2, "batch_scheduler.fixed.micro_sequences": 1},
    {"run.ranks": 1, "batch_scheduler.fixed.micro_sequences": 2, "run.recompute": "full"},
    {"run.ranks": 2, "validation.every": "1 steps", "validation.sequences": 8},
], ids=["accumulation of 4", "two ranks, accumulation of 4", "recomputation", "validation"])
def test_is_the_same_however_a_step_is_made(work, after_one_step, changes):
    work.train(changes={**CHANGES, **changes})
    assert biases(work, 1) == after_one_step


def test_goes_on_after_a_resume(work):
    work.train(changes={**CHANGES, "run.ranks": 1})
    first = biases(work, 1)
    work.train(changes={**CHANGES, "run.ranks": 1, "run.steps": 2})
    resumed = biases(work, 2)
    assert resumed != first
    work.train("--resume", "none", changes={**CHANGES, "run.ranks": 1, "run.steps": 2})
    assert biases(work, 2) == resumed


def test_tied_embeddings_are_saved_and_resumed(work):
    tied = {"model.tie_word_embeddings": True, "checkpoint.every": "5 steps", "run.ranks": 2}
    work.train(changes={**tied, "run.steps": 5})
    work.train(changes={**tied, "run.steps": 10})
    resumed = work.metrics().steps[10]["loss"]
    work.train("--resume", "none", changes={**tied, "run.steps": 10})
    assert work.metrics().steps[10]["loss"] == resumed
