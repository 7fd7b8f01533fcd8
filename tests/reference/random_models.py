# SPDX-License-Identifier: MIT
"""Random models: configurations that together take every path, and weights by a rule that C++ shares.

The rule (tests/model/uniform_values.h has it in C++): element i of the tensor `name` is uniform in [-1, 1),
  key = fnv1a64(name) ^ seed;  z = splitmix64's mix of key + (i + 1) * 0x9e3779b97f4a7c15;  (z >> 40) * 2^-23 - 1
times the amplitude of its kind. So two programs have the same bits without a file between them.
"""
import math
import random

import numpy

GOLDEN_RATIO = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1

# Normal weights of this deviation; others relative to what they are for.
DEVIATIONS = (0.05, 0.1, 0.2)
NORM_AMPLITUDE = 0.5  # around 1
BIAS_AMPLITUDE = 0.25
CORRECTION_BIAS_AMPLITUDE = 12.0


def fnv1a64(text):
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = ((h ^ byte) * 0x100000001B3) & MASK
    return h


def bits(name, count, seed):
    with numpy.errstate(over="ignore"):
        z = numpy.uint64(fnv1a64(name) ^ seed) + numpy.arange(1, count + 1, dtype=numpy.uint64) * numpy.uint64(GOLDEN_RATIO)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return z ^ (z >> numpy.uint64(31))


def uniform(name, shape, seed):
    """float64 in [-1, 1), a multiple of 2^-23."""
    count = math.prod(shape)
    return ((bits(name, count, seed) >> numpy.uint64(40)).astype(numpy.float64) * 2.0**-23 - 1.0).reshape(shape)


def tokens(name, shape, vocabulary, seed):
    return (bits(name, math.prod(shape), seed) % numpy.uint64(vocabulary)).astype(numpy.int64).reshape(shape)


def value(name, shape, seed, deviation):
    """What tensor `name` of a Hugging Face folder holds, in float32."""
    u = uniform(name, shape, seed)
    if name.endswith("e_score_correction_bias"):
        u *= CORRECTION_BIAS_AMPLITUDE
    elif name.endswith(".bias"):
        u *= BIAS_AMPLITUDE
    elif name.endswith("norm.weight"):
        u = 1.0 + NORM_AMPLITUDE * u
    else:
        u *= math.sqrt(3.0) * deviation
    return u.astype(numpy.float32)


def is_mixture(config, layer):
    return layer >= config["num_hidden_layers"] or (
        layer >= config["first_k_dense_replace"] and layer % config["moe_layer_freq"] == 0)


def shapes(config):
    """{name: shape} of all that a Hugging Face folder holds, layers of multi-token prediction included."""
    c = config
    hidden, heads = c["hidden_size"], c["num_attention_heads"]
    query = heads * (c["qk_nope_head_dim"] + c["qk_rope_head_dim"])
    out = {"model.embed_tokens.weight": (c["vocab_size"], hidden)}

    def swiglu(prefix, width):
        out[prefix + "gate_proj.weight"] = out[prefix + "up_proj.weight"] = (width, hidden)
        out[prefix + "down_proj.weight"] = (hidden, width)

    def projection(name, rows, columns, prefix):
        out[f"{prefix}{name}.weight"] = (rows, columns)
        if c["attention_bias"]:
            out[f"{prefix}{name}.bias"] = (rows,)

    for layer in range(c["num_hidden_layers"] + c.get("num_nextn_predict_layers", 0)):
        at = f"model.layers.{layer}."
        if layer >= c["num_hidden_layers"]:
            out.update({at + "enorm.weight": (hidden,), at + "hnorm.weight": (hidden,),
                        at + "eh_proj.weight": (hidden, 2 * hidden), at + "shared_head.norm.weight": (hidden,)})
        for norm in ("input_layernorm", "post_attention_layernorm"):
            out[f"{at}{norm}.weight"] = (hidden,)
        attention = at + "self_attn."
        if c["q_lora_rank"] is None:
            out[attention + "q_proj.weight"] = (query, hidden)
        else:
            projection("q_a_proj", c["q_lora_rank"], hidden, attention)
            out[attention + "q_a_layernorm.weight"] = (c["q_lora_rank"],)
            out[attention + "q_b_proj.weight"] = (query, c["q_lora_rank"])
        projection("kv_a_proj_with_mqa", c["kv_lora_rank"] + c["qk_rope_head_dim"], hidden, attention)
        out[attention + "kv_a_layernorm.weight"] = (c["kv_lora_rank"],)
        out[attention + "kv_b_proj.weight"] = (heads * (c["qk_nope_head_dim"] + c["v_head_dim"]), c["kv_lora_rank"])
        projection("o_proj", hidden, heads * c["v_head_dim"], attention)
        if not is_mixture(c, layer):
            swiglu(at + "mlp.", c["intermediate_size"])
            continue
        out[at + "mlp.gate.weight"] = (c["n_routed_experts"], hidden)
        if c["model_type"] == "deepseek_v3":
            out[at + "mlp.gate.e_score_correction_bias"] = (c["n_routed_experts"],)
        for expert in range(c["n_routed_experts"]):
            swiglu(f"{at}mlp.experts.{expert}.", c["moe_intermediate_size"])
        if c["n_shared_experts"] > 0:
            swiglu(at + "mlp.shared_experts.", c["n_shared_experts"] * c["moe_intermediate_size"])
    out["model.norm.weight"] = (hidden,)
    if not c["tie_word_embeddings"]:
        out["lm_head.weight"] = (c["vocab_size"], hidden)
    return out


def weights(config, seed, deviation):
    return {name: value(name, shape, seed, deviation) for name, shape in shapes(config).items()}


def yarn(rng, original):
    rope = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": rng.choice([4.0, 40.0]),
            "original_max_position_embeddings": original, "beta_fast": 32.0, "beta_slow": 1.0}
    mscales = rng.choice([(), (1.0, 1.0), (0.707, 0.707), (0.9, 0.6), (None, 0.8)])
    if mscales and mscales[0] is not None:
        rope["mscale"] = mscales[0]
    if mscales:
        rope["mscale_all_dim"] = mscales[1]
    return rope


def draw(rng, index):
    """Configuration `index`, as config.json has it. Routers take turns, the rest is chance."""
    router = ("v3", "v3", "v2_greedy", "v2_groups")[index % 4]
    is_v3 = router == "v3"
    is_long = index % 15 == 7  # positions beyond 4096
    heads = rng.choice([2, 4]) if is_long else rng.choice([2, 4, 8])
    groups = 1 if router == "v2_greedy" else rng.choice([1, 2, 4] if is_v3 else [2, 4])
    experts = groups * rng.choice([2, 3, 4]) if groups > 1 else rng.choice([4, 7, 16])
    kept = rng.randint(1, groups)
    reachable = experts if router == "v2_greedy" else experts // groups * kept
    layers = 2 if is_long else rng.randint(2, 5)
    config = {
        "model_type": "deepseek_v3" if is_v3 else "deepseek_v2",
        "vocab_size": rng.choice([61, 128, 259]),
        "hidden_size": 32 if is_long else rng.choice([32, 48, 64, 96, 128]),
        "num_hidden_layers": layers,
        "intermediate_size": rng.choice([40, 96, 130]),
        "moe_intermediate_size": rng.choice([12, 24, 33]),
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "q_lora_rank": rng.choice([None, 20, 32]),
        "kv_lora_rank": rng.choice([12, 16, 24]),
        "qk_nope_head_dim": rng.choice([6, 8, 16]),
        "qk_rope_head_dim": rng.choice([2, 4, 8, 16]),
        "v_head_dim": rng.choice([5, 7, 8, 16, 24]),
        "first_k_dense_replace": rng.randint(0, layers - 1),
        "moe_layer_freq": rng.choice([1, 1, 2]),
        "n_routed_experts": experts,
        "n_shared_experts": rng.randint(0, 2),
        "num_experts_per_tok": rng.randint(1, min(reachable, 4)),
        "n_group": groups,
        "topk_group": kept,
        "topk_method": {"v3": "noaux_tc", "v2_greedy": "greedy", "v2_groups": "group_limited_greedy"}[router],
        "scoring_func": "sigmoid" if is_v3 else "softmax",
        "norm_topk_prob": is_v3 and rng.random() < 0.75,
        "routed_scaling_factor": 2.5 if is_v3 else rng.choice([1.0, 16.0]),
        "tie_word_embeddings": rng.random() < 0.3,
        "attention_bias": rng.random() < 0.3,
        "rms_norm_eps": rng.choice([1e-6, 1e-5, 1e-3]),
        "max_position_embeddings": 8192 if is_long else 512,
        "num_nextn_predict_layers": 0,
    }
    config["rope_parameters"] = (yarn(rng, 4096 if is_long else rng.choice([16, 64]))
                                 if is_long or rng.random() < 0.4 else
                                 {"rope_type": "default", "rope_theta": rng.choice([10000.0, 500.0])})
    if is_v3:
        config["rope_interleave"] = rng.random() < 0.7
    return config


def draws(count, seed):
    rng = random.Random(seed)
    return [draw(rng, index) for index in range(count)]
