# SPDX-License-Identifier: MIT
"""transformers' DeepSeek models as a reference: built from a configuration and weights by name, in fp32 or fp64.

Where the reference is known to be wrong or short of a path, it is changed here, one function each:
  dense_layers   it ignores moe_layer_freq
  Routers        V2 masks the groups that were not kept with 0, which loses to every score but 0: no score may be 0
  widen          it computes norms, softmax and router in fp32 whatever the model is; an fp64 reference must not
"""
import contextlib

import torch
import torch.nn.functional as F
import transformers
from transformers.models.deepseek_v2 import modeling_deepseek_v2 as v2
from transformers.models.deepseek_v3 import modeling_deepseek_v3 as v3

from random_models import is_mixture


class WideTorch:
    """The module `torch`, where float32 is float64."""
    float32 = float = torch.float64

    def __getattr__(self, name):
        return getattr(torch, name)


def rotate_wide(xq, xk, freqs_cis):
    turn = freqs_cis.unsqueeze(1)
    return tuple(torch.view_as_real(torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2).contiguous()) * turn).flatten(3)
                 for x in (xq, xk))


@contextlib.contextmanager
def widen():
    saved = v2.torch, v3.torch, v2.apply_rotary_emb
    v2.torch = v3.torch = WideTorch()
    v2.apply_rotary_emb = rotate_wide
    try:
        yield
    finally:
        v2.torch, v3.torch, v2.apply_rotary_emb = saved


def dense_layers(model, config):
    for number, layer in enumerate(model.model.layers):
        if number >= config["first_k_dense_replace"] and not is_mixture(config, number):
            layer.mlp = (v3.DeepseekV3MLP if config["model_type"] == "deepseek_v3" else v2.DeepseekV2MLP)(model.config)


def mask_out(config):
    """The scores that experts are chosen by, with those of other groups at -inf, and the groups' scores."""
    groups, v3_rule = config["n_group"], config["topk_method"] == "noaux_tc"

    def of(choice):
        if config["topk_method"] == "greedy":
            return choice, None
        grouped = choice.view(len(choice), groups, -1)
        scores = grouped.topk(2, -1)[0].sum(-1) if v3_rule else grouped.max(-1).values
        kept = torch.zeros_like(scores).scatter(1, scores.topk(config["topk_group"], -1)[1], 1).bool()
        return grouped.masked_fill(~kept.unsqueeze(-1), float("-inf")).flatten(1), scores

    return of


def gap(scores, count):
    """By how much the best `count` are better than the rest; infinite where there is no rest."""
    if scores is None or scores.shape[-1] == count:
        return torch.full((1,), float("inf"))
    best = scores.topk(count + 1, -1)[0]
    return best[:, count - 1] - best[:, count]


class Routers:
    """Hooks on the routers: record what they choose, and take the other side's choice where that is given.

    A choice that differs is taken over, so that all that follows can be compared; `gaps` says by how much this side
    would have chosen otherwise: of its scores in fp64, the smaller of the gap between groups and that between experts.
    """

    def __init__(self, layers, config, given=None):
        self.config, self.given = config, given
        self.chosen, self.gaps, self.order = [], [], 0.0
        self.mask = mask_out(config)
        for layer in layers:
            if hasattr(layer.mlp, "gate"):
                layer.mlp.gate.register_forward_hook(self.hook)

    def hook(self, gate, _, output):
        logits, weights, chosen = output
        c, number = self.config, len(self.chosen)
        self.chosen.append(chosen.int())
        if self.given is None:
            return None
        given = self.given[number].long()
        same = (chosen.sort(-1)[0] == given.sort(-1)[0]).all(-1)
        v3_rule = c["topk_method"] == "noaux_tc"
        with torch.no_grad():
            assert v3_rule or logits.softmax(-1).min() > 0, "a score underflowed: V2's mask would not hold"
            exact = logits.double().sigmoid() if v3_rule else logits.double().softmax(-1)
            choice = exact + gate.e_score_correction_bias.double() if v3_rule else exact
            ordered = choice.gather(1, given)
            if ordered.shape[1] > 1:
                self.order = max(self.order, (ordered[:, 1:] - ordered[:, :-1]).max().item())
            if not same.all():
                masked, groups = self.mask(choice[~same])
                self.gaps += torch.minimum(gap(groups, c["topk_group"]), gap(masked, c["num_experts_per_tok"])).tolist()
        if same.all():
            return None
        scores = logits.sigmoid() if v3_rule else logits.softmax(-1)
        theirs = scores.gather(1, given)
        if v3_rule and c["norm_topk_prob"]:
            theirs = theirs / (theirs.sum(-1, keepdim=True) + 1e-20)
        theirs = theirs * c["routed_scaling_factor"]
        keep = same.unsqueeze(-1)
        return logits, torch.where(keep, weights, theirs), torch.where(keep, chosen, given)


def split_names(model):
    """(name in files, view of a tensor of the model) for all tensors that files have; f maps a parameter to its tensor."""
    def of(f):
        out = {}
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
            if "rotary_emb" in name or tensor.numel() == 0:
                continue
            held = f(tensor)
            if name.endswith("experts.gate_up_proj"):
                for expert, both in enumerate(held):
                    at = name.replace("gate_up_proj", f"{expert}.")
                    out[at + "gate_proj.weight"], out[at + "up_proj.weight"] = both.chunk(2)
            elif name.endswith("experts.down_proj"):
                for expert, one in enumerate(held):
                    out[name.replace("down_proj", f"{expert}.down_proj.weight")] = one
            else:
                out[name] = held
        return out
    return of


def build(config, weights, dtype=torch.float32):
    """The eager model with `weights` ({name in files: array})."""
    hf = transformers.AutoConfig.for_model(**config)
    model = transformers.AutoModelForCausalLM.from_config(hf, attn_implementation="eager", dtype=torch.float32,
                                                          experts_implementation="eager")
    dense_layers(model, config)
    with torch.no_grad():
        held = split_names(model)(lambda tensor: tensor)
        named = {k: v for k, v in weights.items() if layer_of(k) < config["num_hidden_layers"]}
        assert set(held) == set(named), set(held) ^ set(named)
        for name, tensor in held.items():
            tensor.copy_(torch.from_numpy(weights[name]))
    rotary = model.model.rotary_emb
    table = rotary.inv_freq, rotary.original_inv_freq
    model.to(dtype)
    rotary.inv_freq, rotary.original_inv_freq = table
    return model.train()


def layer_of(name):
    return int(name.split(".")[2]) if name.startswith("model.layers.") else -1


def loss_of(logits, tokens):
    """Mean over rows of next tokens, in fp64."""
    return F.cross_entropy(logits[:, :-1].double().flatten(0, 1), tokens[:, 1:].flatten())


def gradients(model):
    zero = {}

    def of(tensor):
        if tensor.grad is None:
            zero[id(tensor)] = torch.zeros_like(tensor)
        return zero[id(tensor)] if tensor.grad is None else tensor.grad
    return {k: v for k, v in split_names(model)(of).items() if not k.endswith("e_score_correction_bias")}
