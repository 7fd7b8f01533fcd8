# SPDX-License-Identifier: MIT
"""Models as files, and ciuic as a command."""
import json
import os
import pathlib
import random
import subprocess

import torch
import transformers
from safetensors.torch import load_file, save_file

CIUIC = pathlib.Path(os.environ["CIUIC"])


def ciuic(*arguments):
    done = subprocess.run([CIUIC, *map(str, arguments)], capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise AssertionError(f"ciuic {arguments[0]} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def write_model(config, weights, folder):
    """A Hugging Face folder, its config.json as transformers writes it."""
    hf = transformers.AutoConfig.for_model(**config)
    hf.architectures = ["DeepseekV3ForCausalLM" if config["model_type"] == "deepseek_v3" else "DeepseekV2ForCausalLM"]
    hf.save_pretrained(folder)
    save_file({k: torch.from_numpy(v) for k, v in weights.items()}, folder / "model.safetensors")


def evaluate(model, tokens, folder, outputs):
    """(the JSON object, what each of `outputs` holds)"""
    save_file({"tokens": tokens}, folder / "in.safetensors")
    files = {name: folder / f"{name}.safetensors" for name in outputs}
    answer = json.loads(ciuic("evaluate", "--model", model, "--tokens", folder / "in.safetensors",
                              *[word for name, file in files.items() for word in (f"--{name}", file)]))
    return answer, *[load_file(file) for file in files.values()]


def train(model, folder, rows, length, schedule="", steps=1):
    """The steps of a run from `model` on a text in order, without clipping; (its step lines, its rows of text)."""
    rng = random.Random(7)
    text = bytes(rng.choice(b"abcdefghijklmnopqrstuvwxyz .,\n") for _ in range(steps * rows * length + 2 * length))
    (folder / "text.txt").write_bytes(text)
    (folder / "run.toml").write_text(f"""
[run]
name = "reference"
output = "{folder}/run"
steps = {steps}
threads = 1
[model]
from = "{model}"
[data]
train = ["{folder}/text.txt"]
validation_fraction = 0
sequence_tokens = {length}
order = "sequential"
[batch_scheduler.fixed]
sequences = {rows}
micro_sequences = {rows}
[optimizer]
gradient_clip_norm = 0
[schedule]
learning_rate = 1e-3
expert_bias_rate = 0
{schedule}
""")
    ciuic("train", folder / "run.toml", "--quiet")
    lines = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    return ([line for line in lines if line["type"] == "step"],
            torch.frombuffer(bytearray(text), dtype=torch.uint8).long().unfold(0, length + 1, length))
