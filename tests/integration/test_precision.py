# SPDX-License-Identifier: MIT
"""Precision policies from outside: fp16 under its loss scales, bf16 without masters, DeepSeek's FP8 recipe."""
import json

import pytest

from conftest import assert_fault

QUIET = {"validation.every": "never", "checkpoint.every": "never"}


def fp16(**options):
    return {**QUIET, "precision.plugin": "fp16", **{f"precision.fp16.{k}": v for k, v in options.items()}}


@pytest.fixture(scope="module")
def fp32_losses(shared):
    shared.train("--set", "run.output=fp32", changes={**QUIET, "run.steps": 30})
    return shared.metrics("fp32").losses


@pytest.mark.parametrize("scaler, scale", [("deepspeed", 2**16), ("megatron", 2**32), ("static", 2**16)])
def test_fp16_trains(work, fp32_losses, scaler, scale):
    """Megatron's first scale overflows: it falls until a step is clean, then training is fp32's, some skipped steps later."""
    work.train(changes={**fp16(scaler=scaler), "run.steps": 30})
    steps = work.metrics().of("step")
    assert steps[0]["loss_scale"] == scale
    skipped = steps[-1]["skipped_steps"]
    assert (skipped > 0) == (scaler == "megatron"), "only a first scale of 2^32 is beyond fp16"
    assert steps[-1]["loss_scale"] == scale / 2 ** max(0, skipped - 1), "two overflows before the first halving"
    # 11 bits a number; once steps are skipped, other data under each update.
    assert steps[-1]["loss"] == pytest.approx(fp32_losses[-1 - skipped], rel=0.08 if skipped else 2e-3)
    assert steps[-1]["loss"] < steps[0]["loss"] - 1


def test_b010_skipped_steps_do_not_advance_the_schedule(work):
    """pytorch/pytorch#55585: linear warm-up over 10 steps to 1e-3; the first applied update uses 1e-4."""
    warm_up = [{"until": "10 steps", "to": 1e-3, "shape": "linear"}, {"until": "end", "to": 1e-3, "shape": "constant"}]
    work.train(changes={**fp16(scaler="megatron"), "run.steps": 30, "schedule.learning_rate": warm_up})
    steps = work.metrics().of("step")
    bad = ["non_finite" in line for line in steps]
    skipped = bad.index(False)
    assert skipped >= 3, "2^32 is far beyond fp16"
    assert steps[-1]["skipped_steps"] == sum(bad)
    for line in steps[: skipped + 1]:
        assert line["learning_rate"] == pytest.approx(1e-4, rel=1e-12)
    following = [line for line in steps[skipped + 1:] if "non_finite" not in line][0]
    assert following["learning_rate"] == pytest.approx(2e-4, rel=1e-12)


def test_b037_a_resumed_run_keeps_its_scale(work):
    """huggingface/transformers#34053: the scale and the steps counted towards its growth survive a stop."""
    changes = {**fp16(initial_scale=256.0, window=9), "checkpoint.every": "7 steps", "run.steps": 14}
    work.train("--set", "run.output=straight", changes=changes)
    work.train("--set", "run.steps=7", changes=changes)
    work.train("--set", "run.steps=14")
    straight, resumed = work.metrics("straight"), work.metrics()
    assert resumed.columns() == straight.columns()
    assert resumed.column("loss_scale") == straight.column("loss_scale")
    assert {line["loss_scale"] for line in resumed.of("step")} == {256, 512}


def test_an_exhausted_scale_ends_the_run(work):
    """A real explosion, not fp16's range: exit 7, and what to do."""
    explodes = {"run.steps": 40, "schedule.learning_rate": 1e6, "optimizer.adamw.weight_decay": 100.0,
                "optimizer.max_skipped_steps": 1000}
    result = work.train(changes={**fp16(initial_scale=4.0), **explodes}, code=7)
    assert_fault(result, 7, "smallest loss scale", remedy="earlier checkpoint", seconds=60)


def test_bf16_without_masters_warns(work):
    result = work.train(changes={**QUIET, "precision.plugin": "bf16", "precision.bf16.masters": False})
    assert "updates below 1/512 of a weight vanish" in result.err
    assert "vanish" not in work.train("--resume", "none", "--set", "precision.bf16.masters=true").err


@pytest.mark.parametrize("options", [{}, {"scales": "power_of_two", "stored_inputs": "e4m3", "attention_output": "e5m6"}])
def test_fp8_trains_near_bf16(work, shared, options):
    shared.train("--set", "run.output=bf16", changes={**QUIET, "run.steps": 30, "precision.plugin": "bf16"})
    fp8 = {"precision.plugin": "fp8_block", **{f"precision.fp8_block.{k}": v for k, v in options.items()}}
    work.train(changes={**QUIET, "run.steps": 30, **fp8})
    # Three significant bits beside seven, over 30 steps of a model of width 32; the long proof is test_precision_proof.py.
    assert work.metrics().losses[-1] == pytest.approx(shared.metrics("bf16").losses[-1], rel=2e-2)
    assert work.metrics().losses != shared.metrics("bf16").losses, "FP8 leaves its mark"


def test_fp8_is_evaluated_as_it_was_trained(work):
    changes = {"precision.plugin": "fp8_block", "validation.every": "12 steps", "checkpoint.every": "12 steps"}
    work.train(changes=changes)
    result = work.run("evaluate", "run.toml", "--model", "out")
    assert result.code == 0, result
    assert json.loads(result.out)["loss"] == pytest.approx(work.metrics().validations[12], rel=1e-3)
