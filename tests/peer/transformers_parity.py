# SPDX-License-Identifier: MIT
"""ciuic against transformers' DeepseekV3ForCausalLM: logits, loss, every gradient, and runs of 200 and 50 steps.

Runs in the pinned environment that `tools/setup --peers` makes. Both sides start from one file of weights, written by
transformers; ciuic reads it through `[model] from` and `evaluate`. Tolerances (docs/numerics.md):
  logits     1e-5 x max(1, largest logit): the rounding of fp32 sums in another order
  gradients  ||a - b|| <= 1e-4 ||b|| for each parameter
  training   losses 1e-5 relative for 3 steps, 1e-4 for 30, 1e-3 at every step, norms of gradients ten times that: rounding
             grows as a run goes on, and the same model under other kernels drifts by 1.4e-5 in 30 steps, 4e-4 in 100
"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

import torch
import transformers
from safetensors.torch import load_file, save_file

SOURCE = pathlib.Path(os.environ["CIUIC_SOURCE_DIR"])
CIUIC = pathlib.Path(os.environ["CIUIC"])
SEQUENCE = 64
MICRO = 4
RATE = 3e-4


def ciuic(*arguments):
    done = subprocess.run([CIUIC, *map(str, arguments)], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise AssertionError(f"ciuic {arguments[0]} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def model_of(preset, bias_seed=None):
    """A transformers model with seeded weights; with bias_seed also random correction biases, which routing must honour."""
    torch.manual_seed(0)
    config = transformers.DeepseekV3Config.from_json_file(SOURCE / "configs" / "presets" / f"{preset}.json")
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=torch.float32)
    if bias_seed is not None:
        torch.manual_seed(bias_seed)
        for name, buffer in model.named_buffers():
            if name.endswith("e_score_correction_bias"):
                buffer.copy_(torch.randn_like(buffer) * 0.1)
    return model


def text_of(size):
    rng = random.Random(7)
    words = ["".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.randint(2, 8))) for _ in range(200)]
    return " ".join(rng.choice(words) for _ in range(size // 6))


class Parity(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)

    def compare_forward_and_backward(self, preset, bias_seed):
        model = model_of(preset, bias_seed)
        model.save_pretrained(self.path / "hf")
        tokens = torch.randint(0, 256, (3, SEQUENCE), generator=torch.Generator().manual_seed(1))
        save_file({"tokens": tokens}, self.path / "tokens.safetensors")
        answer = json.loads(ciuic("evaluate", "--model", self.path / "hf", "--tokens", self.path / "tokens.safetensors",
                                  "--logits", self.path / "logits.safetensors",
                                  "--gradients", self.path / "gradients.safetensors"))
        output = model(input_ids=tokens, labels=tokens, use_cache=False)
        output.loss.backward()
        self.assertLess(abs(answer["loss"] - output.loss.item()), 1e-5)

        logits = load_file(self.path / "logits.safetensors")["logits"]
        largest = max(1.0, output.logits.abs().max().item())
        self.assertLess((logits - output.logits).abs().max().item(), 1e-5 * largest)

        gradients = load_file(self.path / "gradients.safetensors")
        # transformers fuses experts in memory; its own export splits them, so gradients are compared as it saves weights.
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(parameter.grad if parameter.grad is not None else torch.zeros_like(parameter))
        model.save_pretrained(self.path / "expected")
        expected = load_file(self.path / "expected" / "model.safetensors")
        trainable = {name for name in expected if not name.endswith("e_score_correction_bias")}
        self.assertEqual(set(gradients), trainable)
        for name in sorted(trainable):
            difference = (gradients[name] - expected[name]).norm().item()
            self.assertLessEqual(difference, 1e-4 * expected[name].norm().item() + 1e-12, name)

    def test_tiny(self):
        self.compare_forward_and_backward("tiny", None)

    def test_small_with_groups_and_biases(self):
        self.compare_forward_and_backward("small", 3)

    def test_exports_load_in_transformers(self):
        self.train_ours(steps=2)
        ciuic("checkpoint", "convert", self.path / "run", self.path / "exported", "--to", "safetensors")
        model = transformers.AutoModelForCausalLM.from_pretrained(self.path / "exported", dtype=torch.float32)
        tokens = torch.randint(0, 256, (2, SEQUENCE), generator=torch.Generator().manual_seed(2))
        save_file({"tokens": tokens}, self.path / "tokens.safetensors")
        answer = json.loads(ciuic("evaluate", "--model", self.path / "run", "--tokens", self.path / "tokens.safetensors"))
        loss = model(input_ids=tokens, labels=tokens, use_cache=False).loss.item()
        self.assertLess(abs(answer["loss"] - loss), 1e-5)

    def train_ours(self, steps, preset="tiny"):
        model_of(preset).save_pretrained(self.path / "init")
        (self.path / "text.txt").write_text(text_of(200_000))
        (self.path / "run.toml").write_text(f"""
[run]
name = "parity"
output = "{self.path}/run"
steps = {steps}
threads = 1
[model]
from = "{self.path}/init"
[data]
train = ["{self.path}/text.txt"]
validation_fraction = 0
sequence_tokens = {SEQUENCE}
order = "sequential"
[batch_scheduler.fixed]
sequences = {MICRO}
micro_sequences = {MICRO}
[schedule]
learning_rate = {RATE}
expert_bias_rate = 0
""")
        ciuic("train", self.path / "run.toml", "--quiet")
        lines = [json.loads(line) for line in (self.path / "run" / "metrics.jsonl").read_text().splitlines()]
        return [line for line in lines if line["type"] == "step"]

    def follow(self, preset, steps):
        """The same initial weights, the same batches: losses and norms of gradients at every step."""
        ours = self.train_ours(steps, preset)
        self.assertEqual(len(ours), steps)
        model = model_of(preset).train()
        text = torch.frombuffer(bytearray((self.path / "text.txt").read_bytes()), dtype=torch.uint8)
        rows = text.unfold(0, SEQUENCE + 1, SEQUENCE)
        optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
        worst = [0.0, 0.0]
        for step in range(steps):
            x = rows[torch.arange(step * MICRO, (step + 1) * MICRO) % len(rows)].long()
            optimizer.zero_grad()
            loss = model(input_ids=(i := x[:, :-1].contiguous()), labels=i, shift_labels=x[:, 1:].contiguous(),
                         use_cache=False).loss
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            tolerance = 1e-5 if step < 3 else 1e-4 if step < 30 else 1e-3
            errors = [abs(ours[step]["loss"] / loss.item() - 1), abs(ours[step]["grad_norm"] / norm.item() - 1)]
            worst = [max(pair) for pair in zip(worst, errors)]
            self.assertLess(errors[0], tolerance, f"loss at step {step + 1}")
            self.assertLess(errors[1], 10 * tolerance, f"norm at step {step + 1}")
        print(f"{preset}, {steps} steps: losses within {worst[0]:.1e}, norms within {worst[1]:.1e}")

    def test_training(self):
        self.follow("tiny", 200)

    def test_training_small(self):
        self.follow("small", 50)


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main(argv=[sys.argv[0], "-v"])
