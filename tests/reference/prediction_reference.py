# SPDX-License-Identifier: MIT
"""A step of training with multi-token prediction against the paper's equations (prediction_model.py): losses and every gradient.

The gradients are read from the checkpoint of one step without clipping: AdamW's first moment is then 0.1 of them. So
this goes through the trainer as runs do. Tolerances as in transformers_reference.py, fp32 on both sides: losses 1e-6
relative, gradients 1e-4.
"""
import pathlib
import tempfile
import unittest
import warnings

import torch
from safetensors.torch import load_file

import ciuic_runs
import prediction_model
import random_models
import transformers_model as reference
from write_goldens import V3

ROWS, LENGTH = 3, 32
CONFIG = {**V3, "vocab_size": 259, "num_hidden_layers": 2, "hidden_size": 48}


class Prediction(unittest.TestCase):
    def compare(self, depths, weight, **changes):
        config = {**CONFIG, "num_nextn_predict_layers": depths, **changes}
        weights = random_models.weights(config, 5, 0.1)
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            ciuic_runs.write_model(config, weights, folder)
            steps, rows = ciuic_runs.train(folder, folder, ROWS, LENGTH, f"mtp_loss_weight = {weight}")
            moments = load_file(folder / "run/checkpoints/step-00000001/shard-00000-of-00001.safetensors")
        ours = {key.removeprefix("moment/exp_avg/"): moment * 10 for key, moment in moments.items()
                if key.startswith("moment/exp_avg/")}
        text = rows[:ROWS]
        tokens, targets = text[:, :-1].contiguous(), text[:, 1:].contiguous()
        model = prediction_model.PredictionModel(config, weights)
        _, main, sums, counts = model.losses(tokens, targets)
        prediction_model.objective(main, sums, weight, tokens.numel()).backward()
        expected = model.gradients()
        self.assertEqual(set(ours), set(expected))
        main, predicted = main.item() / tokens.numel(), sum(s.item() for s in sums) / sum(counts)
        loss_error = max(abs(steps[0]["loss"] / main - 1), abs(steps[0]["mtp_loss"] / predicted - 1))
        self.assertLess(loss_error, 1e-6)
        errors = {k: ((ours[k].reshape_as(g).double() - g.double()).norm() / g.double().norm().clamp_min(1e-30)).item()
                  for k, g in expected.items()}
        for key, error in errors.items():
            self.assertLess(error, 1e-4, key)
        worst = max(errors, key=errors.get)
        print(f"depths {depths}: losses within {loss_error:.1e}, gradients within {errors[worst]:.1e} ({worst})")

    def test_one_depth(self):
        self.compare(1, 0.3)

    def test_two_depths(self):
        self.compare(2, 0.7)

    def test_tied_with_biases(self):
        self.compare(1, 0.5, tie_word_embeddings=True, attention_bias=True, q_lora_rank=None)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    unittest.main(argv=["prediction_reference", "-v"])
