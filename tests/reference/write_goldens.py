# SPDX-License-Identifier: MIT
"""Writes tests/golden/*.json: what transformers says, in fp64, about small models that together take every path.

tests/model/golden_test.cpp compares with them, so that every `tools/test` does what the reference test does, without
Python. Weights and tokens come from random_models' rule on both sides. Of each gradient the norm is kept and sums over
its elements under SIGNS patterns of signs, also by the rule: the mean square of the differences of such sums is that of
the whole gradient. Rotary angles are the reference's, in fp32.

Run it in the environment of `tools/setup --peers`, from the root: .deps/peers/bin/python tests/reference/write_goldens.py
"""
import json
import pathlib
import warnings

import torch

import prediction_model
import random_models
import transformers_model as reference

FOLDER = pathlib.Path(__file__).parent.parent / "golden"
ROWS, LENGTH = 2, 20
SIGNS = 8
MTP_WEIGHT = 0.3

COMMON = {
    "vocab_size": 37, "hidden_size": 32, "num_hidden_layers": 3, "intermediate_size": 40, "moe_intermediate_size": 12,
    "num_attention_heads": 2, "num_key_value_heads": 2, "q_lora_rank": 20, "kv_lora_rank": 12, "qk_nope_head_dim": 6,
    "qk_rope_head_dim": 8, "v_head_dim": 7, "first_k_dense_replace": 1, "moe_layer_freq": 1, "n_routed_experts": 8,
    "n_shared_experts": 1, "num_experts_per_tok": 3, "n_group": 4, "topk_group": 2, "tie_word_embeddings": False,
    "attention_bias": False, "rms_norm_eps": 1e-5, "max_position_embeddings": 512, "num_nextn_predict_layers": 0,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
}
V3 = {**COMMON, "model_type": "deepseek_v3", "topk_method": "noaux_tc", "scoring_func": "sigmoid", "norm_topk_prob": True,
      "routed_scaling_factor": 2.5, "rope_interleave": True}
V2 = {**COMMON, "model_type": "deepseek_v2", "scoring_func": "softmax", "norm_topk_prob": False, "n_shared_experts": 2}


def yarn(mscale, all_dim):
    return {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 40.0, "original_max_position_embeddings": 16,
            "beta_fast": 32.0, "beta_slow": 1.0, "mscale": mscale, "mscale_all_dim": all_dim}


MODELS = {
    "v3_groups": V3,
    "v3_yarn_one_group": {**V3, "rope_parameters": yarn(1.0, 1.0), "n_group": 1, "topk_group": 1, "norm_topk_prob": False},
    "v3_biases_tied_halves_apart": {**V3, "q_lora_rank": None, "attention_bias": True, "tie_word_embeddings": True,
                                    "rope_interleave": False, "n_shared_experts": 0, "v_head_dim": 16},
    "v3_prediction": {**V3, "num_hidden_layers": 2, "num_nextn_predict_layers": 2},
    "v2_greedy_yarn": {**V2, "topk_method": "greedy", "n_group": 1, "topk_group": 1, "routed_scaling_factor": 1.0,
                       "q_lora_rank": None, "rope_parameters": yarn(0.707, 0.707)},
    "v2_groups_of_experts": {**V2, "topk_method": "group_limited_greedy", "routed_scaling_factor": 16.0,
                             "n_shared_experts": 0, "rope_parameters": yarn(0.9, 0.6)},
    "v2_every_second_layer": {**V2, "topk_method": "group_limited_greedy", "routed_scaling_factor": 1.0, "n_group": 2,
                              "topk_group": 1, "moe_layer_freq": 2, "first_k_dense_replace": 0, "attention_bias": True,
                              "tie_word_embeddings": True, "v_head_dim": 16},
}


def sketch(name, gradient):
    """[norm, SIGNS signed sums]"""
    flat = gradient.double().flatten()
    sums = []
    for k in range(SIGNS):
        signs = random_models.uniform(f"{name}#{k}", (flat.numel(),), 0) >= 0
        sums.append((flat * torch.where(torch.from_numpy(signs), 1.0, -1.0).double()).sum().item())
    return [float(f"{x:.10g}") for x in (flat.norm().item(), *sums)]


def golden(config, seed, deviation):
    weights = random_models.weights(config, seed, deviation)
    text = torch.from_numpy(random_models.tokens("tokens", (ROWS, LENGTH + 1), config["vocab_size"], seed))
    tokens, targets = text[:, :-1].contiguous(), text[:, 1:].contiguous()
    model = prediction_model.PredictionModel(config, weights, torch.float64)
    routers = reference.Routers([*model.main.model.layers, *(depth.layer for _, depth in model.depths)], config)
    with reference.widen():
        logits, main, sums, counts = model.losses(tokens, targets)
        prediction_model.objective(main, sums, MTP_WEIGHT, tokens.numel()).backward()
    return {
        "config": config, "seed": seed, "deviation": deviation, "rows": ROWS, "tokens": LENGTH,
        "loss": main.item() / tokens.numel(),
        "mtp_weight": MTP_WEIGHT,
        "mtp_loss": sum(s.item() for s in sums) / sum(counts) if sums else None,
        "logits": [float(f"{x:.8g}") for x in logits.flatten().tolist()],
        # Of the layers before those of multi-token prediction, whose last tokens the reference leaves out.
        "experts": [chosen.sort(-1)[0].tolist() for chosen in routers.chosen[:len(routers.chosen) - len(model.depths)]],
        "gradients": {name: sketch(name, gradient) for name, gradient in sorted(model.gradients().items())},
    }


def main():
    warnings.simplefilter("ignore")  # of shared experts of no width, initialised
    FOLDER.mkdir(exist_ok=True)
    for number, (name, config) in enumerate(MODELS.items()):
        (FOLDER / f"{name}.json").write_text(json.dumps(golden(config, number + 1, 0.15), separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
