# SPDX-License-Identifier: MIT
"""What ciuic writes, as transformers reads it: config.json and weights of a trained model give the same logits there.

For YaRN (written as rope_parameters and, for older tools, as rope_scaling), tied embeddings and both generations.
Logits within 1e-5 x max(1, largest logit), as in transformers_reference.py.
"""
import json
import pathlib
import tempfile
import unittest
import warnings

import torch
import transformers

import ciuic_runs
import random_models
from write_goldens import V2, V3, yarn

SIZES = {"vocab_size": 259, "hidden_size": 48, "num_hidden_layers": 2}
MODELS = {
    "v3": V3,
    "v3_yarn_tied_biases": {**V3, "rope_parameters": yarn(1.0, 1.0), "tie_word_embeddings": True, "attention_bias": True},
    "v3_yarn_without_mscale_halves_apart": {
        **V3, "rope_interleave": False, "q_lora_rank": None,
        "rope_parameters": {k: v for k, v in yarn(0, 0).items() if "mscale" not in k}},
    "v2_greedy_yarn": {**V2, "topk_method": "greedy", "n_group": 1, "topk_group": 1, "routed_scaling_factor": 1.0,
                       "rope_parameters": yarn(0.707, 0.707), "q_lora_rank": None},
    "v2_groups_tied": {**V2, "topk_method": "group_limited_greedy", "routed_scaling_factor": 16.0,
                       "tie_word_embeddings": True, "rope_parameters": {"rope_type": "default", "rope_theta": 500.0}},
}


class Export(unittest.TestCase):
    def compare(self, name):
        config = {**MODELS[name], **SIZES}
        with tempfile.TemporaryDirectory() as at:
            folder = pathlib.Path(at)
            ciuic_runs.write_model(config, random_models.weights(config, 3, 0.1), folder)
            ciuic_runs.train(folder, folder, 2, 32)
            ciuic_runs.ciuic("checkpoint", "convert", folder / "run", folder / "exported", "--to", "safetensors")
            read = transformers.AutoConfig.from_pretrained(folder / "exported")
            for key, value in config.items():
                if key not in ("rope_parameters", "topk_method", "scoring_func", "moe_layer_freq", "norm_topk_prob"):
                    self.assertEqual(getattr(read, key), value, key)
            for key, value in config["rope_parameters"].items():
                self.assertEqual(read.rope_parameters[key], value, key)
            if "mscale" not in config["rope_parameters"]:
                self.assertIsNone(read.rope_parameters.get("mscale"))
            tokens = torch.from_numpy(random_models.tokens("tokens", (2, 48), 259, 1))
            for spelling in ("rope_parameters", "rope_scaling"):
                self.respell(folder / "exported", spelling)
                model = transformers.AutoModelForCausalLM.from_pretrained(
                    folder / "exported", dtype=torch.float32, attn_implementation="eager")
                with torch.no_grad():
                    expected = model(input_ids=tokens, use_cache=False).logits
                _, logits = ciuic_runs.evaluate(folder / "exported", tokens, folder, ["logits"])
                error = ((logits["logits"] - expected).abs().max() / expected.abs().max().clamp_min(1)).item()
                self.assertLessEqual(error, 1e-5, spelling)
                print(f"{name} as {spelling}: logits within {error:.1e}")

    @staticmethod
    def respell(folder, kept):
        """Leaves one of the two spellings; the second call leaves the other."""
        path = folder / "config.json"
        original = folder / "config.original.json"
        if not original.exists():
            original.write_text(path.read_text())
        config = json.loads(original.read_text())
        config.pop({"rope_parameters": "rope_scaling", "rope_scaling": "rope_parameters"}[kept], None)
        path.write_text(json.dumps(config))


for name in MODELS:
    setattr(Export, f"test_{name}", lambda self, name=name: self.compare(name))

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    unittest.main(argv=["export_reference", "-v"])
