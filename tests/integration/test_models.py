# SPDX-License-Identifier: MIT
"""The paths of DeepSeek models as whole runs: terms of the objective, recomputation, stopping and going on; and estimates."""
import json
import resource

import pytest

from conftest import TINY, assert_fault

MTP = {"model.num_nextn_predict_layers": 1, "schedule.balance_loss_weight": 0.01, "schedule.router_z_loss_weight": 0.001}
V2 = {
    "model.model_type": "deepseek_v2", "model.scoring_func": "softmax", "model.topk_method": "greedy",
    "model.norm_topk_prob": False, "model.routed_scaling_factor": 1.0, "model.q_lora_rank": "none",
    "schedule.balance_loss_weight": 0.003, "schedule.device_balance_loss_weight": 0.05,
}
TIED = {"model.tie_word_embeddings": True, "model.attention_bias": True, "model.num_nextn_predict_layers": 2, "schedule.router_noise": 0.1}
# V3's without the layer for multi-token prediction is 671,026,419,200 with the correction biases.
PUBLISHED = {"deepseek-v3": 682_636_472_320, "deepseek-v2-lite": 15_706_484_224, "deepseek-v2": 235_741_434_880}
PATHS = {"mtp": MTP, "v2": V2, "tied": TIED}


def columns(lines, *names):
    return [[line[name] for name in names] for line in lines]


@pytest.mark.parametrize("name", PATHS)
def test_it_learns_and_two_ranks_agree_with_one(work, name):
    work.train("--ranks", "1", changes={**PATHS[name], "run.steps": 10, "run.output": "one"})
    work.train("--ranks", "2", changes={**PATHS[name], "run.steps": 10, "run.output": "two"})
    first, second = (work.metrics(folder).of("step") for folder in ("one", "two"))
    terms = [t for t in ("loss", "mtp_loss", "balance_loss", "router_z_loss", "grad_norm") if t in first[0]]
    assert ("mtp_loss" in terms) == (name != "v2")
    assert ("balance_loss" in terms) == (name != "tied")
    for a, b in zip(first, second):
        for term in terms:
            assert b[term] == pytest.approx(a[term], rel=1e-4), (term, a["step"])  # sums in another order
    assert first[-1]["loss"] < first[0]["loss"]


def test_recomputation_moves_no_bit(work):
    seen = {}
    for recompute in ("none", "selective", "full"):
        work.train(changes={**MTP, "run.recompute": recompute, "run.output": recompute})
        seen[recompute] = columns(work.metrics(recompute).of("step"), "loss", "mtp_loss", "grad_norm", "balance_loss")
    assert seen["none"] == seen["selective"] == seen["full"]


@pytest.mark.parametrize("name", PATHS)
def test_a_run_that_goes_on_has_the_same_bits(work, name):
    changes = {**PATHS[name], "run.steps": 10}
    work.train(changes={**changes, "run.output": "whole"})
    work.train(changes={**changes, "run.steps": 5})
    work.train(changes=changes)
    whole, joined = (columns(work.metrics(f).of("step"), "step", "loss", "grad_norm") for f in ("whole", "out"))
    assert joined == whole


def estimate(work, *arguments):
    result = work.run("estimate", "run.toml", "--json", *arguments)
    assert result.code == 0, result
    return json.loads(result.out)


def test_estimates_count_the_published_models_without_allocating(work):
    sizes = {key: None for key in TINY if key.startswith("model.")}
    for preset, parameters in PUBLISHED.items():
        work.config({**sizes, "model.preset": preset})
        assert estimate(work)["parameters"] == parameters, preset
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 800_000  # KiB, where V3 has 671 billion parameters


def test_an_estimate_stands_beside_what_was_measured(work):
    work.config({})
    assert "measured_peak_bytes" not in estimate(work)
    work.train()
    after = estimate(work)
    parts = "value", "gradient", "master", "optimizer", "activation_kept", "activation_passing", "process"
    assert after["total_bytes"] == sum(after[f"{part}_bytes"] for part in parts)
    assert 0.5 < after["total_bytes"] / after["measured_peak_bytes"] < 1.5  # a tiny model: the process is most of it
    text = work.run("estimate", "run.toml").out
    assert "predicted / measured" in text and "activations kept" in text


def test_bad_arguments_of_estimate(work):
    assert_fault(work.run("estimate"), 2, "no FILE is given")
    assert_fault(work.run("estimate", "run.toml", "--ranks", "0"), 2, "--ranks")
