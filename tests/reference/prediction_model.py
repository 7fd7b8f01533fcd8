# SPDX-License-Identifier: MIT
"""Multi-token prediction from the paper's equations, on top of transformers' DeepSeek-V3, which trains none.

  h'_i^k = M_k [RMSNorm(Emb(t_{i+k})) ; RMSNorm(h_i^{k-1})]    eq. 21; the embedding's half first, as in published weights
  h_{1:T-k}^k = TRM_k(h'_{1:T-k}^k)                            eq. 22; a layer of transformers
  P_{i+k+1}^k = OutHead(h_i^k)                                 eq. 23; shared, after a norm of the depth's own
  L = L_main + lambda / D * sum_k L_k                          eq. 24, 25; sums over targets, divided by the main loss's

Source: DeepSeek-V3, arXiv:2412.19437, section 2.2. h^0 is the main model's state before its final norm.
"""
import torch
import torch.nn.functional as F
from transformers.models.deepseek_v3 import modeling_deepseek_v3 as v3

import transformers_model as reference


class Depth(torch.nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        norm = lambda: v3.DeepseekV3RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.enorm, self.hnorm = norm(), norm()
        self.eh_proj = torch.nn.Linear(2 * config.hidden_size, config.hidden_size, bias=False)
        self.layer = v3.DeepseekV3DecoderLayer(config, layer)
        self.shared_head = torch.nn.ModuleDict({"norm": norm()})

    def forward(self, embedded, hidden, angles, mask):
        x = self.eh_proj(torch.cat((self.enorm(embedded), self.hnorm(hidden)), -1))
        return self.layer(x, position_embeddings=angles, attention_mask=mask)


class PredictionModel:
    """A main model, and depths with weights by their names in files."""

    def __init__(self, config, weights, dtype=torch.float32):
        self.main = reference.build(config, weights, dtype)
        self.depths = []
        for layer in range(config["num_hidden_layers"], config["num_hidden_layers"] + config["num_nextn_predict_layers"]):
            depth, prefix = Depth(self.main.config, layer), f"model.layers.{layer}."
            with torch.no_grad():
                for name, tensor in self.named(depth, prefix, lambda tensor: tensor).items():
                    tensor.copy_(torch.from_numpy(weights[name]))
            self.depths.append((prefix, depth.to(dtype)))

    @staticmethod
    def named(depth, prefix, of):
        """Names in files: those of a layer have no `layer.` in them."""
        return {prefix + name.removeprefix("layer."): tensor for name, tensor in reference.split_names(depth)(of).items()}

    def losses(self, tokens, targets):
        """(logits, sum of the main loss, sums of each depth's, their numbers of targets); targets of rows of T tokens."""
        hidden = []
        hook = self.main.model.norm.register_forward_hook(lambda _, inputs, __: hidden.append(inputs[0]))
        logits = self.main(input_ids=tokens, use_cache=False).logits
        hook.remove()
        sums, counts, h = [], [], hidden[0]
        for k, (_, depth) in enumerate(self.depths, 1):
            left = tokens.shape[1] - k
            embedded = self.main.model.embed_tokens(tokens[:, k:])
            positions = torch.arange(left).unsqueeze(0)
            mask = torch.full((left, left), float("-inf"), dtype=h.dtype).triu(1)
            h = depth(embedded, h[:, :left], self.main.model.rotary_emb(h, positions), mask)
            predicted = self.main.lm_head(depth.shared_head["norm"](h))
            sums.append(sum_of_losses(predicted, targets[:, k:]))
            counts.append(targets[:, k:].numel())
        return logits, sum_of_losses(logits, targets), sums, counts

    def gradients(self):
        out = reference.gradients(self.main)
        for prefix, depth in self.depths:
            out.update({prefix + name.removeprefix("layer."): g for name, g in reference.gradients(depth).items()})
        return out


def sum_of_losses(logits, targets):
    return F.cross_entropy(logits.double().flatten(0, 1), targets.flatten(), reduction="sum")


def objective(main, sums, weight, tokens):
    return (main + weight / max(1, len(sums)) * sum(sums)) / tokens
