# SPDX-License-Identifier: MIT
"""Hugging Face folders both ways: exports in every type and number of files, training from them, and what is refused."""
import array
import json
import shutil

import pytest

import safetensors_file
from conftest import TINY, assert_fault, assert_no_partial_files

NO_MODEL = {key: None for key in TINY if key.startswith("model.")}


@pytest.fixture(scope="module")
def trained(shared):
    """A run ("out") and tokens to judge its exports by."""
    shared.train(changes={"run.steps": 30})
    text = (shared / "text.txt").read_bytes()
    tokens = array.array("q", list(text[100:164] + text[500:564]))
    safetensors_file.write(shared / "tokens.safetensors", {"tokens": ((2, 64), tokens)})
    return shared


def convert(work, source, target, *arguments, to="safetensors"):
    result = work.run("checkpoint", "convert", source, target, "--to", to, *arguments)
    assert result.code == 0, result
    return work / target


def loss(work, model):
    result = work.run("evaluate", "--model", model, "--tokens", "tokens.safetensors")
    assert result.code == 0, result
    return json.loads(result.out)["loss"], result


@pytest.fixture(scope="module")
def exports(trained):
    """{type: folder}, and "split": as stored, in several files."""
    folders = {kind: convert(trained, "out", f"hf-{kind}", "--dtype", kind) for kind in ("fp32", "bf16", "fp8")}
    folders["split"] = convert(trained, "out", "hf-split", "--max-file-size", "40KiB")
    folders["split-fp8"] = convert(trained, "out", "hf-split-fp8", "--dtype", "fp8", "--max-file-size", "16KiB")
    return folders


def tensors_of(folder):
    tensors = {}
    for file in sorted(folder.glob("*.safetensors")):
        tensors.update(safetensors_file.read_raw(file))
    return tensors


def test_every_type_is_read_back(trained, exports):
    expected, _ = loss(trained, "out")
    assert loss(trained, exports["fp32"])[0] == expected
    assert loss(trained, exports["split"])[0] == expected
    for kind, tolerance in (("bf16", 1e-2), ("fp8", 5e-2)):
        value, _ = loss(trained, exports[kind])
        assert value != expected and value == pytest.approx(expected, rel=tolerance)
    assert loss(trained, exports["split-fp8"])[0] == loss(trained, exports["fp8"])[0]


def test_types_and_configurations_of_the_files(exports):
    kinds = {kind: {t: {n for n, (dtype, _, _) in tensors_of(exports[kind]).items() if dtype == t}
                    for t in ("F32", "BF16", "F8_E4M3")} for kind in ("fp32", "bf16", "fp8")}
    biases = {n for n in kinds["fp32"]["F32"] if n.endswith("e_score_correction_bias")}
    assert biases and not kinds["fp32"]["BF16"]
    assert kinds["bf16"]["F32"] == biases
    quantised = kinds["fp8"]["F8_E4M3"]
    assert quantised == {n for n in kinds["fp32"]["F32"] if n.endswith(("_proj.weight", "_proj_with_mqa.weight"))}
    assert kinds["fp8"]["F32"] == biases | {f"{n}_scale_inv" for n in quantised}
    for kind, dtype in (("fp32", "float32"), ("bf16", "bfloat16"), ("fp8", "bfloat16")):
        config = json.loads((exports[kind] / "config.json").read_text())
        assert config["dtype"] == config["torch_dtype"] == dtype
        assert ("quantization_config" in config) == (kind == "fp8")


def test_several_files_have_an_index(exports):
    names = sorted(p.name for p in exports["split"].glob("*.safetensors"))
    assert len(names) > 3 and names[0] == f"model-00001-of-{len(names):05}.safetensors"
    index = json.loads((exports["split"] / "model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == sum(len(data) for _, _, data in tensors_of(exports["split"]).values())
    assert set(index["weight_map"]) == set(tensors_of(exports["fp32"]))


PREDICTING = {
    "mtp": {"model.num_nextn_predict_layers": 2},
    "tied": {"model.num_nextn_predict_layers": 1, "model.tie_word_embeddings": True, "model.attention_bias": True},
}


@pytest.mark.parametrize("name", PREDICTING)
def test_layers_for_prediction_go_both_ways(work, name):
    """The published names, with copies of what is shared; back in, and out again byte for byte."""
    work.train(changes={**PREDICTING[name], "run.steps": 4})
    folder = convert(work, "out", "hf")
    tensors = tensors_of(folder)
    config = json.loads((folder / "config.json").read_text())
    layers, depths = config["num_hidden_layers"], config["num_nextn_predict_layers"]
    assert depths == PREDICTING[name]["model.num_nextn_predict_layers"]
    for depth in range(depths):
        prefix = f"model.layers.{layers + depth}."
        for part in ("enorm", "hnorm", "eh_proj", "shared_head.norm", "mlp.gate", "self_attn.kv_b_proj"):
            assert f"{prefix}{part}.weight" in tensors, part
        head = "model.embed_tokens.weight" if config["tie_word_embeddings"] else "lm_head.weight"
        assert tensors[f"{prefix}embed_tokens.weight"] == tensors["model.embed_tokens.weight"]
        assert tensors[f"{prefix}shared_head.head.weight"] == tensors[head]
    convert(work, "hf", "native", to="sharded")
    assert tensors_of(convert(work, "native", "again")) == tensors
    changes = {**NO_MODEL, "model.from": "hf", "run.output": "on", "run.steps": 2, "run.ranks": 2}
    work.train(changes=changes)
    assert all(line["mtp_loss"] > 0 for line in work.metrics("on").of("step"))
    work.train(changes={**changes, "model.num_nextn_predict_layers": 0, "run.output": "without"})
    assert all("mtp_loss" not in line for line in work.metrics("without").of("step"))


@pytest.mark.parametrize("kind", ["fp32", "bf16", "split"])
def test_folder_to_checkpoint_to_folder_keeps_every_byte(trained, exports, kind):
    convert(trained, exports[kind], f"native-{kind}", to="sharded")
    for limit in ((), ("--max-file-size", "64KiB")):
        back = convert(trained, f"native-{kind}", f"back-{kind}{len(limit)}", *limit)
        assert tensors_of(back) == tensors_of(exports[kind])
        assert json.loads((back / "config.json").read_text()) == json.loads((exports[kind] / "config.json").read_text())


def test_fp8_through_bf16_is_a_fixed_point(trained, exports):
    folder, seen = exports["fp8"], []
    for step in range(3):
        middle = convert(trained, folder, f"cycle-bf16-{step}", "--dtype", "bf16")
        folder = convert(trained, middle, f"cycle-fp8-{step}", "--dtype", "fp8")
        seen.append(tensors_of(folder))
    assert seen[1] == seen[2] == seen[0]


@pytest.mark.parametrize("kind", ["fp32", "bf16", "fp8", "split"])
def test_training_starts_from_a_folder_at_any_number_of_ranks(trained, exports, kind):
    losses = []
    for ranks in (1, 2):
        output = f"from-{kind}-{ranks}"
        trained.config({**NO_MODEL, "model.from": str(exports[kind]), "run.output": output, "run.steps": 3,
                        "run.ranks": ranks, "validation.every": "1 step"}, file="from.toml")
        result = trained.run("train", "from.toml")
        assert result.code == 0, result
        losses.append(trained.metrics(output).validations)
    assert set(losses[0]) == {0, 1, 2, 3}
    for step in losses[0]:
        assert losses[0][step] == pytest.approx(losses[1][step], rel=1e-6)
    trained.config({**NO_MODEL, "model.from": str(exports[kind])}, file="judge.toml")
    result = trained.run("evaluate", "judge.toml", "--model", exports[kind])
    assert result.code == 0, result
    assert losses[0][0] == pytest.approx(json.loads(result.out)["loss"], rel=1e-6)


def copied(trained, source, name):
    folder = trained / name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder)
    return folder


def set_config(folder, **fields):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **fields}))


def test_a_promised_mtp_layer_that_is_not_there_is_said(trained, exports):
    """As transformers exports: num_nextn_predict_layers = 1 and no such layer."""
    folder = copied(trained, exports["fp32"], "promised")
    set_config(folder, num_nextn_predict_layers=1)
    value, result = loss(trained, folder)
    assert value == loss(trained, exports["fp32"])[0]
    assert result.err.count("num_nextn_predict_layers = 1") == 1, result
    trained.config({**NO_MODEL, "model.from": str(folder), "run.output": "promised-run", "run.steps": 1},
                   file="promised.toml")
    result = trained.run("train", "promised.toml")
    assert result.code == 0, result
    assert result.err.count("num_nextn_predict_layers = 1") == 1, result
    assert "num_nextn_predict_layers = 0" in (trained / "promised-run/config.resolved.toml").read_text()
    again = convert(trained, folder, "promised-again")
    assert json.loads((again / "config.json").read_text())["num_nextn_predict_layers"] == 0


def test_an_mtp_layer_may_stay_unused(trained, exports):
    folder = copied(trained, exports["fp32"], "unused")
    set_config(folder, num_nextn_predict_layers=1)
    weights = safetensors_file.read(folder / "model.safetensors")
    weights["model.layers.2.enorm.weight"] = ((32,), array.array("f", [1.0] * 32))
    weights["model.layers.0.self_attn.rotary_emb.inv_freq"] = ((4,), array.array("f", [1.0] * 4))
    safetensors_file.write(folder / "model.safetensors", weights)
    trained.config({**NO_MODEL, "model.from": str(folder), "model.num_nextn_predict_layers": 0,
                    "run.output": "unused-run", "run.steps": 1}, file="unused.toml")
    result = trained.run("train", "unused.toml")
    assert result.code == 0, result
    # Without the configuration's word it is a tensor too many.
    set_config(folder, num_nextn_predict_layers=0)
    result = trained.run("evaluate", "--model", folder, "--tokens", "tokens.safetensors")
    assert_fault(result, 6, "belongs to no parameter: model.layers.2.enorm.weight")


def test_all_tensors_that_do_not_fit_are_listed(trained, exports):
    folder = copied(trained, exports["fp32"], "unfit")
    weights = safetensors_file.read(folder / "model.safetensors")
    del weights["lm_head.weight"], weights["model.layers.0.mlp.up_proj.weight"]
    weights["model.extra.weight"] = ((1,), array.array("f", [1.0]))
    weights["model.norm.weight"] = ((2,), array.array("f", [1.0, 1.0]))
    safetensors_file.write(folder / "model.safetensors", weights)
    said = ["missing: lm_head.weight", "missing: model.layers.0.mlp.up_proj.weight",
            "belongs to no parameter: model.extra.weight", "model.norm.weight: got [2], expected [32]"]
    assert_fault(trained.run("evaluate", "--model", folder, "--tokens", "tokens.safetensors"), 6, *said)
    for ranks in (1, 2):
        trained.config({**NO_MODEL, "model.from": str(folder), "run.output": "unfit-run", "run.ranks": ranks},
                       file="unfit.toml")
        assert_fault(trained.run("train", "unfit.toml"), 6, *said, seconds=15)


def test_all_scales_that_do_not_fit_are_listed(trained, exports):
    folder = copied(trained, exports["fp8"], "scales")
    raw = safetensors_file.read_raw(folder / "model.safetensors")
    del raw["model.layers.0.mlp.up_proj.weight_scale_inv"], raw["model.layers.1.self_attn.o_proj.weight"]
    name = "model.layers.0.mlp.gate_proj.weight_scale_inv"
    raw[name] = ("F32", (1, 2), bytes(8))
    safetensors_file.write_raw(folder / "model.safetensors", raw)
    result = trained.run("evaluate", "--model", folder, "--tokens", "tokens.safetensors")
    assert_fault(result, 6, "model.layers.0.mlp.up_proj.weight: an FP8 weight without its scales",
                 "model.layers.1.self_attn.o_proj.weight_scale_inv: scales without a weight",
                 f"{name}: got F32 [1, 2], expected F32 [1, 1]")


def test_codes_that_are_no_number_are_refused(trained, exports):
    folder = copied(trained, exports["fp8"], "nan")
    raw = safetensors_file.read_raw(folder / "model.safetensors")
    for name in ("model.layers.0.mlp.up_proj.weight", "model.layers.1.self_attn.o_proj.weight"):
        dtype, shape, data = raw[name]
        raw[name] = (dtype, shape, data[:-1] + b"\x7f")
    safetensors_file.write_raw(folder / "model.safetensors", raw)
    assert_fault(trained.run("evaluate", "--model", folder, "--tokens", "tokens.safetensors"), 6, "NaN at [")
    assert_fault(trained.run("checkpoint", "verify", folder), 6, "model.layers.0.mlp.up_proj.weight: 1 NaN",
                 "model.layers.1.self_attn.o_proj.weight: 1 NaN")


@pytest.mark.parametrize("arguments, said", [
    (("--to", "safetensors", "--dtype", "int8"), ["int8", "bf16", "fp8_block"]),
    (("--to", "safetensors", "--max-file-size", "1"), ["max_file_size"]),
    (("--to", "safetensors", "--max-file-size", "x"), ["max_file_size"]),
    (("--to", "sharded", "--dtype", "bf16"), ["sharded", "dtype"]),
])
def test_options_that_cannot_be(trained, arguments, said):
    assert_fault(trained.run("checkpoint", "convert", "out", "none", *arguments), 2, *said)
    assert not (trained / "none").exists()
    assert_no_partial_files(trained.path)


def test_options_of_convert_belong_to_convert(trained):
    assert_fault(trained.run("checkpoint", "list", "out", "--dtype", "bf16"), 2, "convert")
