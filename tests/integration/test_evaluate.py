# SPDX-License-Identifier: MIT
"""evaluate and generate: numbers that Python can recompute from the files they write."""
import array
import json
import math
import random
import shutil
import struct

import pytest

import safetensors_file
from conftest import assert_fault, flip_byte

VOCABULARY = 259
ROWS, LENGTH = 3, 16


@pytest.fixture(scope="module")
def model(shared):
    """A trained run ("out"), its export ("hf") and tokens ("tokens.safetensors")."""
    shared.train(changes={"run.steps": 30, "run.ranks": 2})
    assert shared.run("checkpoint", "convert", "out", "hf", "--to", "safetensors").code == 0
    choose = random.Random(3)
    text = (shared / "text.txt").read_bytes()
    starts = [choose.randrange(len(text) - LENGTH) for _ in range(ROWS)]
    tokens = array.array("q", [b for s in starts for b in text[s:s + LENGTH]])
    safetensors_file.write(shared / "tokens.safetensors", {"tokens": ((ROWS, LENGTH), tokens)})
    shared.tokens = tokens
    return shared


def evaluate(work, *arguments):
    """The one JSON object on stdout."""
    result = work.run("evaluate", *arguments)
    assert result.code == 0, result
    assert len(result.out.splitlines()) == 1, result
    return json.loads(result.out)


@pytest.fixture(scope="module")
def outputs(model):
    """(the JSON, logits, gradients)"""
    said = evaluate(model, "--model", "hf", "--tokens", "tokens.safetensors", "--logits", "logits.safetensors",
                    "--gradients", "gradients.safetensors")
    return said, *(safetensors_file.read(model / f"{name}.safetensors") for name in ("logits", "gradients"))


def test_validation_loss_is_that_of_the_run(model):
    said = evaluate(model, "run.toml", "--model", "out")
    assert said["loss"] == pytest.approx(model.metrics().validations[30], rel=1e-6)
    assert said["tokens"] == 8 * 32


@pytest.mark.parametrize("where", ["out", "out/", "out/checkpoints/step-00000030", "hf"])
def test_all_forms_of_a_model_agree(model, outputs, where):
    said = evaluate(model, "--model", where, "--tokens", "tokens.safetensors")
    assert said["loss"] == outputs[0]["loss"]


def test_an_earlier_checkpoint_is_worse(model, outputs):
    early = evaluate(model, "--model", "out/checkpoints/step-00000020", "--tokens", "tokens.safetensors")
    assert early["loss"] > outputs[0]["loss"]


def test_logits_give_the_loss(model, outputs):
    said, logits, _ = outputs
    assert list(logits) == ["logits"]
    shape, values = logits["logits"]
    assert shape == (ROWS, LENGTH, VOCABULARY) and values.typecode == "f"
    total = 0.0
    for row in range(ROWS):
        for position in range(LENGTH - 1):
            at = (row * LENGTH + position) * VOCABULARY
            scores = values[at:at + VOCABULARY]
            top = max(scores)
            target = model.tokens[row * LENGTH + position + 1]
            total += top + math.log(math.fsum(math.exp(s - top) for s in scores)) - scores[target]
    assert said["tokens"] == ROWS * (LENGTH - 1)
    assert said["loss"] == pytest.approx(total / (ROWS * (LENGTH - 1)), rel=1e-5)


def test_gradients_have_the_names_and_shapes_of_the_export(model, outputs):
    exported = safetensors_file.read(model / "hf/model.safetensors")
    trainable = {name: shape for name, (shape, _) in exported.items() if "e_score_correction_bias" not in name}
    assert {name: shape for name, (shape, _) in outputs[2].items()} == trainable
    assert all(values.typecode == "f" for _, values in outputs[2].values())


def test_gradients_are_zero_where_no_token_came(model, outputs):
    shape, values = outputs[2]["model.embed_tokens.weight"]
    width = shape[1]
    rows = {t: any(values[t * width:(t + 1) * width]) for t in range(VOCABULARY)}
    seen = {t for i, t in enumerate(model.tokens) if (i + 1) % LENGTH}
    assert {t for t, present in rows.items() if present} == seen


def test_routing_is_that_of_each_mixture(model):
    evaluate(model, "--model", "hf", "--tokens", "tokens.safetensors", "--routing", "routing.safetensors")
    config = json.loads((model / "hf/config.json").read_text())
    mixtures = config["num_hidden_layers"] - config["first_k_dense_replace"]
    chosen, among = config["num_experts_per_tok"], config["n_routed_experts"]
    tensors = safetensors_file.read(model / "routing.safetensors")
    assert list(tensors) == ["experts"]
    shape, values = tensors["experts"]
    assert shape == (mixtures, ROWS * LENGTH, chosen) and values.typecode == "i"
    rows = [values[i:i + chosen] for i in range(0, len(values), chosen)]
    assert all(len(set(row)) == chosen and set(row) <= set(range(among)) for row in rows)
    assert len(set(values)) > chosen


@pytest.fixture(scope="module")
def smooth(model):
    """The export with all experts chosen for every token, where the loss has no jumps, and its gradients."""
    folder = model / "smooth"
    folder.mkdir()
    config = json.loads((model / "hf/config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "num_experts_per_tok": config["n_routed_experts"]}))
    shutil.copy(model / "hf/model.safetensors", folder)
    evaluate(model, "--model", folder, "--tokens", "tokens.safetensors", "--gradients", "smooth.safetensors")
    return folder, safetensors_file.read(model / "smooth.safetensors")


@pytest.mark.parametrize("name", [
    "lm_head.weight", "model.norm.weight", "model.embed_tokens.weight", "model.layers.0.mlp.down_proj.weight",
    "model.layers.1.self_attn.kv_b_proj.weight", "model.layers.1.mlp.shared_experts.up_proj.weight",
    "model.layers.1.mlp.experts.0.down_proj.weight", "model.layers.1.self_attn.o_proj.weight"])
def test_a_gradient_is_the_slope_of_the_loss(model, smooth, name):
    """Central difference along the gradient itself, where the loss moves most."""
    folder, gradients = smooth
    weights = safetensors_file.read(folder / "model.safetensors")
    gradient = gradients[name][1]
    norm = math.sqrt(math.fsum(g * g for g in gradient))
    assert norm > 1e-3
    step = 0.01
    losses = []
    for sign in (1, -1):
        shape, values = weights[name]
        moved = array.array("f", [v + sign * step * g / norm for v, g in zip(values, gradient)])
        there = model / f"moved-{name}"
        there.mkdir()
        shutil.copy(folder / "config.json", there)
        safetensors_file.write(there / "model.safetensors", {**weights, name: (shape, moved)})
        losses.append(evaluate(model, "--model", there, "--tokens", "tokens.safetensors")["loss"])
        shutil.rmtree(there)
    assert (losses[0] - losses[1]) / (2 * step) == pytest.approx(norm, rel=0.02)


def test_rows_do_not_see_each_other(model, outputs):
    """Each row is one document: alone it has the loss and the logits that it has among others."""
    last = model.tokens[-LENGTH:]
    safetensors_file.write(model / "one.safetensors", {"tokens": ((1, LENGTH), last)})
    evaluate(model, "--model", "hf", "--tokens", "one.safetensors", "--logits", "one-logits.safetensors")
    _, alone = safetensors_file.read(model / "one-logits.safetensors")["logits"]
    among = outputs[1]["logits"][1][-LENGTH * VOCABULARY:]
    assert max(abs(a - b) for a, b in zip(alone, among)) < 1e-5


def test_logits_do_not_see_the_future(model):
    ahead = array.array("q", model.tokens[:LENGTH])
    ahead[-1] = (ahead[-1] + 1) % 256
    logits = []
    for name, tokens in (("a", model.tokens[:LENGTH]), ("b", ahead)):
        safetensors_file.write(model / f"{name}.safetensors", {"tokens": ((1, LENGTH), tokens)})
        evaluate(model, "--model", "hf", "--tokens", f"{name}.safetensors", "--logits", f"{name}-l.safetensors")
        logits.append(safetensors_file.read(model / f"{name}-l.safetensors")["logits"][1])
    cut = (LENGTH - 1) * VOCABULARY
    assert max(abs(a - b) for a, b in zip(logits[0][:cut], logits[1][:cut])) < 1e-5
    assert logits[0][cut:] != logits[1][cut:]


def test_evaluate_twice_gives_the_same(model, outputs):
    again = evaluate(model, "--model", "hf", "--tokens", "tokens.safetensors")
    assert again["loss"] == outputs[0]["loss"]


def test_precision_of_the_file_is_used(model, outputs):
    bf16 = evaluate(model, "run.toml", "--model", "hf", "--tokens", "tokens.safetensors", "--set", "precision.plugin=bf16")
    assert bf16["loss"] != outputs[0]["loss"]
    assert bf16["loss"] == pytest.approx(outputs[0]["loss"], rel=2e-2)


@pytest.mark.parametrize("tensor, said", [
    ({"other": ((1, 4), array.array("q", [1, 2, 3, 4]))}, ["tokens"]),
    ({"tokens": ((1, 4), array.array("f", [1, 2, 3, 4]))}, ["int64"]),
    ({"tokens": ((4,), array.array("q", [1, 2, 3, 4]))}, ["batch, sequence"]),
    ({"tokens": ((1, 4), array.array("q", [1, 2, 259, 4]))}, ["259", "258"]),
    ({"tokens": ((1, 4), array.array("q", [1, -2, 3, 4]))}, ["-2"]),
    ({"tokens": ((1, 1), array.array("q", [1]))}, ["tokens"]),
    ({"tokens": ((1, 1025), array.array("q", [1] * 1025))}, ["1025", "1024"]),
])
def test_tokens_that_do_not_fit(model, tensor, said):
    safetensors_file.write(model / "bad.safetensors", tensor)
    result = model.run("evaluate", "--model", "hf", "--tokens", "bad.safetensors", "--logits", "none.safetensors")
    assert_fault(result, 2, "bad.safetensors", *said)
    assert result.out == "" and not (model / "none.safetensors").exists()


def test_files_that_are_not_there(model):
    assert_fault(model.run("evaluate", "--model", "hf", "--tokens", "nowhere.safetensors"), 6, "nowhere.safetensors")
    assert_fault(model.run("evaluate", "--model", "nowhere", "--tokens", "tokens.safetensors"), 6, "nowhere")
    assert_fault(model.run("generate", "--model", "nowhere", "--prompt", "x"), 6, "nowhere")


def test_tokens_file_that_is_a_text(model):
    (model / "text.safetensors").write_text("hello")
    assert_fault(model.run("evaluate", "--model", "hf", "--tokens", "text.safetensors"), 6, "text.safetensors")


def test_damaged_model_is_refused(model, tmp_path):
    shutil.copytree(model.checkpoint(30), tmp_path / "step-00000030")
    shard = tmp_path / "step-00000030/shard-00000-of-00002.safetensors"
    data = shard.read_bytes()
    (header,) = struct.unpack_from("<Q", data)
    places = {name: entry["data_offsets"] for name, entry in json.loads(data[8:8 + header]).items() if name.startswith("value/")}
    flip_byte(shard, 8 + header + min(begin for begin, _ in places.values()) + 1)
    result = model.run("evaluate", "--model", tmp_path / "step-00000030", "--tokens", "tokens.safetensors")
    assert_fault(result, 6, "step-00000030")
    assert result.out == ""


def test_model_with_a_tensor_missing_or_too_many(model, tmp_path):
    weights = safetensors_file.read(model / "hf/model.safetensors")
    for name, changed in (("lm_head.weight", {k: v for k, v in weights.items() if k != "lm_head.weight"}),
                          ("model.extra", {**weights, "model.extra": ((1,), array.array("f", [1]))})):
        shutil.rmtree(tmp_path / "hf", ignore_errors=True)
        (tmp_path / "hf").mkdir()
        shutil.copy(model / "hf/config.json", tmp_path / "hf")
        safetensors_file.write(tmp_path / "hf/model.safetensors", changed)
        assert_fault(model.run("evaluate", "--model", tmp_path / "hf", "--tokens", "tokens.safetensors"), 6, name)


def test_hugging_face_configuration_in_both_spellings(model, outputs, tmp_path):
    shutil.copytree(model / "hf", tmp_path / "hf")
    config = json.loads((tmp_path / "hf/config.json").read_text())
    theta = config.pop("rope_theta", None)
    if theta is None:
        theta = config.pop("rope_parameters")["rope_theta"]
    for spelling in ({"rope_theta": theta}, {"rope_parameters": {"rope_theta": theta, "rope_type": "default"}}):
        (tmp_path / "hf/config.json").write_text(json.dumps({**config, **spelling}))
        said = evaluate(model, "--model", tmp_path / "hf", "--tokens", "tokens.safetensors")
        assert said["loss"] == outputs[0]["loss"], spelling



# a text

def test_perplexity_is_that_of_the_loss(outputs):
    assert outputs[0]["perplexity"] == pytest.approx(math.exp(outputs[0]["loss"]), rel=1e-9)


def write_text(model, size, name="some.txt"):
    (model / name).write_bytes((model / "text.txt").read_bytes()[:size].decode("utf-8", "ignore").encode())
    return (model / name).read_bytes()


def token_losses(model, rows):
    """Cross entropy of each target of these rows of bytes, from the logits that evaluate writes."""
    length = len(rows[0])
    safetensors_file.write(model / "rows.safetensors",
                           {"tokens": ((len(rows), length), array.array("q", [b for row in rows for b in row]))})
    evaluate(model, "--model", "hf", "--tokens", "rows.safetensors", "--logits", "rows-logits.safetensors")
    _, logits = safetensors_file.read(model / "rows-logits.safetensors")["logits"]
    losses = []
    for r, row in enumerate(rows):
        for position in range(length - 1):
            at = (r * length + position) * VOCABULARY
            scores = logits[at:at + VOCABULARY]
            top = max(scores)
            losses.append(top + math.log(math.fsum(math.exp(s - top) for s in scores)) - scores[row[position + 1]])
    return losses


@pytest.mark.parametrize("sequence, stride", [(20, None), (20, 20), (20, 7), (63, 1), (1024, None)])
def test_text_is_cut_into_rows(model, sequence, stride):
    """Each token but the first counts once, with the context that its row gives it."""
    text = write_text(model, 64)
    step = stride or sequence
    said = evaluate(model, "--model", "hf", "--text", "some.txt", "--sequence-tokens", str(sequence),
                    *(["--stride", str(stride)] if stride else []))
    total, next_target = 0.0, 1
    for begin in range(0, len(text) - 1, step):
        row = text[begin:begin + sequence + 1]
        if begin + len(row) > next_target:
            total += math.fsum(token_losses(model, [row])[next_target - begin - 1:])
            next_target = begin + len(row)
    assert next_target == len(text) and said["tokens"] == len(text) - 1
    assert said["loss"] == pytest.approx(total / (len(text) - 1), rel=1e-5)
    assert said["perplexity"] == pytest.approx(math.exp(said["loss"]), rel=1e-9)


def test_rows_of_the_file_and_of_the_model(model):
    write_text(model, 300)
    by_file = evaluate(model, "run.toml", "--model", "hf", "--text", "some.txt")
    assert by_file["loss"] == evaluate(model, "--model", "hf", "--text", "some.txt", "--sequence-tokens", "32")["loss"]
    by_model = evaluate(model, "--model", "hf", "--text", "some.txt")
    assert by_model["loss"] == evaluate(model, "--model", "hf", "--text", "some.txt", "--sequence-tokens", "1024")["loss"]
    assert by_model["tokens"] == by_file["tokens"]


def test_progress_goes_to_stderr(model):
    write_text(model, 500)
    result = model.run("evaluate", "--model", "hf", "--text", "some.txt")
    assert "tokens/s" in result.err and len(result.out.splitlines()) == 1
    result = model.run("evaluate", "--model", "hf", "--text", "some.txt", "--quiet")
    assert result.code == 0 and result.err == ""


@pytest.mark.parametrize("arguments, said", [
    (["--text", "some.txt", "--sequence-tokens", "1025"], ["1025", "1024"]),
    (["--text", "some.txt", "--sequence-tokens", "0"], ["--sequence-tokens"]),
    (["--text", "some.txt", "--sequence-tokens", "10", "--stride", "11"], ["--stride", "10"]),
    (["--text", "some.txt", "--stride", "0"], ["--stride"]),
    (["--text", "some.txt", "--tokens", "tokens.safetensors"], ["both"]),
    (["--tokens", "tokens.safetensors", "--stride", "3"], ["--text"]),
    (["--text", "none.txt"], ["none.txt"]),
    (["--text", "short.txt"], ["short.txt", "1 tokens"]),
    (["--text", "latin.txt"], ["latin.txt", "UTF-8"]),
])
def test_texts_and_cuts_that_do_not_fit(model, arguments, said):
    write_text(model, 300)
    (model / "short.txt").write_bytes(b"x")
    (model / "latin.txt").write_bytes(b"gr\xfc\xdfe")
    result = model.run("evaluate", "--model", "hf", *arguments)
    assert_fault(result, 2, *said)
    assert result.out == ""
