# SPDX-License-Identifier: MIT
"""Update rules in whole runs, and what [optimizer] says of single parameters."""
import json
import shutil

import pytest

import safetensors_file
from conftest import CIUIC, assert_fault, assert_no_run

CHANGES = {"run.steps": 12, "checkpoint.every": "12 steps", "validation.every": "never"}


def tensors(work, step, output="out"):
    """{name: bytes} of the model in a checkpoint."""
    found = {}
    for file in sorted(work.checkpoint(step, output).glob("**/*.safetensors")):
        for name, (_, _, data) in safetensors_file.read_raw(file).items():
            role, _, parameter = name.partition("/")
            if role == "value":
                found[parameter] = found.get(parameter, b"") + data
    assert found
    return found


RULES = {
    "adamw with bf16 moments": {"optimizer.adamw.moments": "bf16"},
    "sgd": {"optimizer.plugin": "sgd", "schedule.learning_rate": 0.3},
    "lion": {"optimizer.plugin": "lion", "schedule.learning_rate": 1e-3},
    "muon": {"optimizer.plugin": "muon"},
}


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_learns_and_resumes_bit_for_bit(work, rule):
    work.config({**CHANGES, **RULES[rule], "checkpoint.every": "6 steps", "checkpoint.keep": 0})
    work.train()
    whole = work.metrics().columns()
    assert work.metrics().losses[-1] < work.metrics().losses[0] - 0.2
    last = tensors(work, 12)
    shutil.rmtree(work.checkpoint(12))
    work.train()
    assert work.metrics().of("run")[1]["start_step"] == 6
    assert work.metrics().columns() == whole
    assert tensors(work, 12) == last


def test_field_bug_b022_frozen_values_are_in_the_checkpoint(work):
    frozen = ["model.layers.0.*", "model.embed_tokens.weight"]
    work.config({**CHANGES, "checkpoint.every": "6 steps", "checkpoint.keep": 0, "optimizer.frozen": frozen})
    work.train()
    first, last = tensors(work, 6), tensors(work, 12)
    is_frozen = {name: name.startswith("model.layers.0.") or name == "model.embed_tokens.weight" for name in first
                 if not name.endswith("e_score_correction_bias")}
    assert sum(is_frozen.values()) > 5
    for name, stays in is_frozen.items():
        assert (first[name] == last[name]) == stays, name
    # Another seed makes other initial values: what is loaded are the file's.
    work.train("--set", "run.seed=99", "--set", "run.steps=14", "--set", "checkpoint.every=14 steps")
    later = tensors(work, 14)
    assert all(later[name] == last[name] for name, stays in is_frozen.items() if stays)


def test_a_detached_embedding_is_a_frozen_one(work):
    """Without momentum and decay, a gradient of 0 leaves values and norm alone."""
    work.config({**CHANGES, "optimizer.plugin": "sgd", "optimizer.sgd.momentum": 0.0, "schedule.learning_rate": 0.3})
    work.train("--set", "optimizer.embedding_gradient_scale=0", "--set", "run.output=detached")
    work.train("--set", "optimizer.frozen=[\"*embed*\"]", "--set", "run.output=frozen")
    work.train("--set", "run.output=plain")
    assert work.metrics("detached").columns() == work.metrics("frozen").columns()
    assert work.metrics("detached").columns() != work.metrics("plain").columns()
    assert tensors(work, 12, "detached") == tensors(work, 12, "frozen")


def test_factors_by_pattern_move_what_they_name(work):
    """A learning rate of 0 by pattern stands still, and the last pattern counts."""
    work.config({**CHANGES, "run.steps": 3, "checkpoint.every": "1 steps", "checkpoint.keep": 0})
    (work / "run.toml").write_text((work / "run.toml").read_text() +
                                   '\n[optimizer.learning_rate_scale]\n"*" = 0.0\n"*norm*" = 1.0\n')
    work.train()
    first, last = tensors(work, 1), tensors(work, 3)
    for name in first:
        if not name.endswith("e_score_correction_bias"):
            assert (first[name] != last[name]) == ("norm" in name), name


def test_a_pattern_without_parameter_is_refused(work):
    work.config({**CHANGES, "optimizer.frozen": ["model.layer.0.*"]})
    result = work.train(code=2)
    assert 'optimizer.frozen: "model.layer.0.*" matches no parameter; near are model.layers.0.' in result.err, result
    assert_no_run(work)


@pytest.mark.parametrize("plugin, option", [("adamw", "no_decay"), ("muon", "adamw"), ("lion", "no_decay")])
def test_a_pattern_of_a_plugin_without_parameter_is_refused(work, plugin, option):
    work.config({**CHANGES, "optimizer.plugin": plugin, f"optimizer.{plugin}.{option}": ["*norm*", "*nrom*"]})
    result = work.train(code=2)
    assert f'optimizer.{plugin}.{option}: "*nrom*" matches no parameter; near are model.' in result.err, result
    assert '"*norm*"' not in result.err, result


@pytest.mark.parametrize("sharding", ["ddp", "zero1", "zero2", "zero3"])
def test_norms_of_parts_of_the_gradient(work, sharding):
    """Three patterns that part the parameters: squares add up to that of the whole. Tolerance: sums in double of the same numbers."""
    parts = ["*embed*", "model.layers.*", "model.norm.weight", "lm_head.weight"]
    work.config({**CHANGES, "run.ranks": 2, "communicator.plugin": "gloo", "sharding.plugin": sharding,
                 "optimizer.gradient_norms": [*parts, "*"]})
    work.train()
    steps = work.metrics().of("step")
    assert len(steps) == 12
    for step in steps:
        norms = step["grad_norms"]
        assert list(norms) == sorted([*parts, "*"]), norms
        assert norms["*"] == step["grad_norm"], step
        assert sum(norms[p] ** 2 for p in parts) == pytest.approx(step["grad_norm"] ** 2, rel=1e-12), step


def test_to_freeze_all_is_refused(work):
    work.config({**CHANGES, "optimizer.frozen": ["*"]})
    result = work.train(code=2)
    assert "nothing is left to train" in result.err, result


def test_an_estimate_leaves_out_what_frozen_parameters_do_not_have(work):
    def state(*arguments):
        work.config(CHANGES)
        result = work.run("estimate", "run.toml", "--json", *arguments)
        assert result.code == 0, result
        return json.loads(result.out)

    trained, frozen = state(), state("--set", 'optimizer.frozen=["model.layers.*"]')
    assert frozen["value_bytes"] == trained["value_bytes"]
    assert frozen["gradient_bytes"] < trained["gradient_bytes"]
    assert frozen["optimizer_bytes"] == 2 * frozen["gradient_bytes"], "AdamW's two moments, of what is trained"


def test_a_rule_that_forgets_the_low_precision_values_is_named(work):
    """Under bf16 it would train on with values that never move."""
    work.config({"plugins.path": [str(CIUIC.parent.parent / "tests/mutants")], "optimizer.plugin": "forgets_copy", "run.steps": 4})
    refused = work.run("train", "run.toml", "--set", "precision.plugin=bf16")
    assert_fault(refused, 3, "the optimizer must write value beside master", seconds=30)
    work.train()
