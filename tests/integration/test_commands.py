# SPDX-License-Identifier: MIT
"""The command line itself: help, versions, config, plugin, checkpoint, and what it does not know."""
import os
import re
import statistics
import subprocess
import time
import tomllib

import pytest

import safetensors_file
from conftest import CIUIC, SOURCE, TINY, assert_fault, assert_no_run, clean_environment, flip_byte

COMMANDS = ["train", "evaluate", "generate", "config", "plugin", "checkpoint"]
KINDS = {"communicator": {"gloo", "local", "shm"}, "sharding": {"ddp", "zero1", "zero2", "zero3"}, "optimizer": {"adamw", "lion", "muon", "sgd"}, "precision": {"bf16", "fp16", "fp32", "fp8_block"},
         "batch_scheduler": {"fixed", "ramp"}, "checkpoint": {"sharded", "safetensors"}, "profiler": {"monitor"}}


@pytest.fixture(scope="module")
def trained(shared):
    shared.train(changes={"run.steps": 10, "run.ranks": 2})
    return shared


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["help"]])
def test_help_names_every_command(work, arguments):
    result = work.run(*arguments)
    assert result.code == 0 and not result.err
    assert result.out.startswith("usage: ciuic") and "Examples:" in result.out
    assert not [c for c in COMMANDS if not re.search(rf"^  {c} ", result.out, re.MULTILINE)], result


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command(work, command):
    result = work.run(command, "--help")
    assert result.code == 0 and not result.err, result
    assert f"usage: ciuic {command}" in result.out and "Examples:" in result.out and f"  ciuic {command} " in result.out
    assert max(len(line) for line in result.out.splitlines()) <= 120


def test_help_is_quick(work):
    seconds = []
    for _ in range(5):
        begin = time.perf_counter()
        subprocess.run([CIUIC, "--help"], stdout=subprocess.DEVNULL, check=True)
        seconds.append(time.perf_counter() - begin)
    print(f"ciuic --help: {statistics.median(seconds) * 1e3:.1f} ms")
    assert statistics.median(seconds) < 0.2, "50 ms are promised; four times that on a busy machine"


@pytest.mark.parametrize("arguments", [
    ["--help"], ["--version"], ["train", "--help"], ["config", "check", "run.toml"], ["config", "show", "run.toml"], ["config", "reference"],
    ["plugin", "--help"], ["plugin", "list"], ["plugin", "inspect", "adamw"], ["plugin", "schema", "adamw"], ["plugin", "quarantine"],
    ["plugin", "new", "profiler", "mine"], ["plugin", "check", "--list"], ["checkpoint", "list", "--help"], ["evaluate", "--help"],
    ["plugin", "replay", "--help"]])
def test_output_that_is_lost_is_6(work, arguments):
    work.config()
    with open("/dev/full", "w") as full:
        done = subprocess.run([CIUIC, *arguments], cwd=work.path, env=clean_environment(), stdout=full, stderr=subprocess.PIPE, text=True, timeout=60,
                              check=False)
    assert done.returncode == 6 and "stdout" in done.stderr and "is the disk full?" in done.stderr, done


@pytest.mark.parametrize("arguments", [
    ["config", "reference", "run.toml"], ["checkpoint", "list", "a", "b"], ["checkpoint", "verify", "a", "--to", "sharded"]])
def test_an_argument_without_effect_is_2(work, arguments):
    assert_fault(work.run(*arguments), 2)


def test_launcher_does_not_link_libtorch():
    linked = subprocess.run(["ldd", CIUIC], capture_output=True, text=True).stdout
    assert "libtorch" not in linked and "libc10" not in linked, linked


def test_version_says_its_own_the_abi_and_the_libraries(work):
    result = work.run("--version")
    versions = dict(line.rsplit(" ", 1) for line in result.out.splitlines())
    assert result.code == 0
    for name in ("ciuic", "plugin ABI", "LibTorch", "Boost", "toml++", "spdlog", "nlohmann-json"):
        assert re.fullmatch(r"\d+(\.\d+)+", versions[name]), versions
    assert versions["LibTorch"] == "2.11.0" and versions["plugin ABI"] == "0.2"


@pytest.mark.parametrize("arguments, said", [
    ([], None),
    (["fly"], "fly"),
    (["trian", "run.toml"], "trian"),
    (["--wings"], "--wings"),
    (["train"], "FILE"),
    (["train", "run.toml", "--wings"], "--wings"),
    (["train", "run.toml", "--rank", "2"], "--rank"),
    (["train", "run.toml", "second.toml"], None),
    (["train", "run.toml", "--set"], "--set"),
    (["evaluate"], "--model"),
    (["evaluate", "--model", "x"], "nothing to evaluate"),
    (["evaluate", "--wings"], "--wings"),
    (["generate"], "--model"),
    (["generate", "--model", "x", "--temperature", "hot"], "temperature"),
    (["generate", "--model", "x", "--temperature", "-1"], "temperature"),
    (["generate", "--model", "x", "--max-tokens", "-1"], "max-tokens"),
    (["config"], None),
    (["config", "sing"], "sing"),
    (["config", "check"], "FILE"),
    (["config", "reference", "--format", "pdf"], "pdf"),
    (["plugin"], None),
    (["plugin", "sing"], "sing"),
    (["plugin", "inspect"], "NAME"),
    (["checkpoint"], None),
    (["checkpoint", "sing", "x"], "sing"),
    (["checkpoint", "list"], "PATH"),
    (["checkpoint", "convert", "x"], "TARGET"),
    (["train", "run.toml", "--log-level", "loud"], "loud"),
], ids=lambda value: " ".join(value) if isinstance(value, list) else None)
def test_what_it_does_not_know_is_2(work, arguments, said):
    work.config()
    result = work.run(*arguments)
    assert result.code == 2, result
    if arguments:
        assert_fault(result, 2, *([said] if said else []))
    assert_no_run(work)


@pytest.mark.parametrize("later", ["doctor", "report", "top", "import-deepspeed"])
def test_commands_of_later_say_so(work, later):
    assert_fault(work.run(later), 2, later, "not built yet")


# config

def test_config_check(work):
    work.config()
    result = work.run("config", "check", "run.toml")
    assert result.code == 0 and "run.toml: ok" in result.out and not result.err
    assert_no_run(work)


@pytest.mark.parametrize("recipe", sorted(p.name for p in (SOURCE / "configs").glob("*.toml")))
def test_every_recipe_checks(work, recipe):
    overrides = ["--set", 'data.train=["text.txt"]', "--set", "plugins.path=[]"]
    result = work.run("config", "check", SOURCE / "configs" / recipe, *overrides)
    assert result.code == 0, result


def test_config_show_has_the_resolved_values(work):
    work.config()
    result = work.run("config", "show", "run.toml", "--set", "optimizer.adamw.beta2=0.99", "--set", "run.steps=77")
    assert result.code == 0, result
    shown = tomllib.loads(result.out)
    assert shown["run"]["steps"] == 77 and shown["optimizer"]["adamw"]["beta2"] == 0.99
    assert shown["optimizer"]["adamw"]["beta1"] == 0.9, "a default"
    assert shown["model"]["hidden_size"] == TINY["model.hidden_size"] and shown["model"]["vocab_size"] == 259
    for said in ("run.toml:", "default", "--set"):
        assert said in result.out, "where each value comes from"
    assert_no_run(work)


def test_a_reader_that_goes_away_is_nobodys_fault(work):
    work.config()
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run([CIUIC, "config", "show", "run.toml"], cwd=work.path, stdout=writer, stderr=subprocess.PIPE, text=True,
                            timeout=60)
    os.close(writer)
    assert result.returncode == 141 and "crashed" not in result.stderr, result


def test_config_show_runs_again(work):
    work.config({"run.steps": 2})
    (work / "shown.toml").write_text(work.run("config", "show", "run.toml").out)
    assert work.run("train", "shown.toml").code == 0
    assert work.run("config", "show", "shown.toml").code == 0


def test_config_reference_is_a_run_file(work):
    result = work.run("config", "reference")
    assert result.code == 0
    reference = tomllib.loads(result.out)
    for key in TINY:
        table = key.split(".")[0]
        assert table in reference, key
    (work / "reference.toml").write_text(result.out)
    (work / "data").mkdir()
    (work / "data/a.txt").write_text((work / "text.txt").read_text())
    check = work.run("config", "check", "reference.toml")
    assert check.code == 0, check
    short = ["--set", "run.steps=1", "--set", "data.sequence_tokens=32", "--set", "model.num_hidden_layers=2",
             "--set", "batch_scheduler.fixed.sequences=4", "--set", "batch_scheduler.fixed.micro_sequences=4"]
    assert work.run("train", "reference.toml", *short).code == 0


def test_config_reference_as_markdown(work):
    result = work.run("config", "reference", "--format", "md")
    assert result.code == 0 and "run.steps" in result.out or "`steps`" in result.out
    assert "|" in result.out


# plugin

def test_plugin_list(work):
    result = work.run("plugin", "list")
    assert result.code == 0 and not result.err
    found = {}
    for line in result.out.splitlines()[1:]:
        kind, name, version, *_ = line.split()
        found.setdefault(kind, set()).add(name)
        assert re.fullmatch(r"\d+\.\d+\.\d+", version) and line.rstrip().endswith(".so"), line
    assert found == KINDS


@pytest.mark.parametrize("name", sorted(set().union(*KINDS.values())))
def test_plugin_inspect(work, name):
    result = work.run("plugin", "inspect", name)
    assert result.code == 0 and not result.err, result
    for said in (name, "abi      0.2", "license  MIT", f"lib{name}.so", "options"):
        assert said in result.out, result


def test_plugin_inspect_by_file_and_what_is_not_there(work):
    file = CIUIC.parent.parent / "plugins/libadamw.so"
    result = work.run("plugin", "inspect", file)
    assert result.code == 0 and "beta1 = 0.9" in result.out and "[optimizer.adamw]" in result.out
    assert_fault(work.run("plugin", "inspect", "nosuch"), 3, "nosuch", remedy="see ciuic plugin list")
    assert_fault(work.run("plugin", "inspect", "adamv"), 3, "did you mean adamw?")
    assert_fault(work.run("plugin", "schema", "glo"), 3, "did you mean gloo?")
    assert_fault(work.run("plugin", "inspect", "./nosuch.so"), 3, "nosuch.so")


# checkpoint

def test_checkpoint_list(trained):
    result = trained.run("checkpoint", "list", "out")
    assert result.code == 0 and len(result.out.splitlines()) == 2, result
    assert "step-00000005" in result.out and "step-00000010" in result.out
    inside = trained.run("checkpoint", "list", trained.checkpoint(10))
    assert inside.code == 0
    for said in ("config.json", "train.json", "value/model.embed_tokens.weight", "value/lm_head.weight",
                 "e_score_correction_bias", "moment/"):
        assert said in inside.out, inside


def test_checkpoint_verify(trained):
    result = trained.run("checkpoint", "verify", "out")
    assert result.code == 0 and result.out.count(": ok") == 2, result
    assert trained.run("checkpoint", "verify", trained.checkpoint(5)).code == 0


@pytest.mark.parametrize("file", ["shard-00000-of-00002.safetensors", "shard-00001-of-00002.safetensors", "index.json"])
@pytest.mark.parametrize("place", [0.0, 0.01, 0.5, 0.999])
def test_one_flipped_byte_is_found(trained, tmp_path, file, place):
    copy = tmp_path / "step-00000010"
    subprocess.run(["cp", "-r", trained.checkpoint(10), copy], check=True)
    size = (copy / file).stat().st_size
    flip_byte(copy / file, int(place * (size - 1)))
    result = trained.run("checkpoint", "verify", copy)
    assert_fault(result, 6, file)
    assert "DAMAGED" in result.out, result


def test_verify_of_a_run_names_every_damaged_one(work):
    work.train(changes={"run.steps": 10})
    flip_byte(work.checkpoint(5) / "shard-00000-of-00001.safetensors")
    result = work.run("checkpoint", "verify", "out")
    assert result.code == 6 and result.last_line.startswith("ciuic: error: "), result
    assert re.search(r"step-00000010: ok", result.out) and re.search(r"step-00000005: DAMAGED", result.out), result


@pytest.mark.parametrize("action", ["list", "verify"])
def test_checkpoint_that_is_not_there(trained, action):
    assert_fault(trained.run("checkpoint", action, "nowhere"), 6, "nowhere")


def test_folder_without_checkpoints(work):
    (work / "out/checkpoints").mkdir(parents=True)
    for action in ("list", "verify"):
        assert_fault(work.run("checkpoint", action, "out"), 6, "out")


def test_list_with_a_damaged_checkpoint_shows_the_others(work):
    work.train(changes={"run.steps": 10})
    flip_byte(work.checkpoint(10) / "index.json", 100)
    result = work.run("checkpoint", "list", "out")
    assert "step-00000005" in result.out, result


def test_convert_to_safetensors(trained):
    result = trained.run("checkpoint", "convert", "out", "hf", "--to", "safetensors")
    assert result.code == 0, result
    assert {p.name for p in (trained / "hf").iterdir()} == {"config.json", "model.safetensors"}
    tensors = safetensors_file.read(trained / "hf/model.safetensors")
    assert tensors["model.embed_tokens.weight"][0] == (259, 32)
    assert tensors["model.layers.1.mlp.gate.e_score_correction_bias"][0] == (4,)
    assert all(values.typecode == "f" for _, values in tensors.values())
    assert_fault(trained.run("checkpoint", "convert", "out", "hf", "--to", "safetensors"), 6, "hf")
    assert_fault(trained.run("checkpoint", "convert", "out", "hf2", "--to", "nosuch"), 3, "nosuch", "safetensors")


def test_convert_of_bf16_exports_the_fp32_masters(work):
    work.train(changes={"run.steps": 3, "precision.plugin": "bf16"})
    assert work.run("checkpoint", "convert", "out", "hf", "--to", "safetensors").code == 0
    _, values = safetensors_file.read(work / "hf/model.safetensors")["lm_head.weight"]
    assert values.typecode == "f"
    assert any(int.from_bytes(values[i:i + 1].tobytes(), "little") & 0xffff for i in range(100)), "more bits than bf16"


def test_model_from_an_export_starts_from_its_weights(trained):
    if not (trained / "hf2").exists():
        assert trained.run("checkpoint", "convert", "out", "hf2", "--to", "safetensors").code == 0
    trained.config({"model.preset": None, **{k: None for k in TINY if k.startswith("model.")}, "model.from": "hf2",
                    "run.output": "from", "run.steps": 2}, file="from.toml")
    result = trained.run("train", "from.toml")
    assert result.code == 0, result
    assert trained.metrics("from").validations[0] == pytest.approx(trained.metrics().validations[10], rel=1e-6)


# the terminal

def test_quiet_verbose_and_levels(work):
    work.config({"run.steps": 2})
    loud = work.train("--verbose")
    assert "debug" in loud.err
    work.train("--log-level", "off", "--set", "run.output=two")


def test_no_color_off_a_terminal(work):
    result = work.run("train", "nowhere.toml")
    assert "\x1b" not in result.err


def in_a_terminal(work, *arguments, env=None):
    """Output of a command that sees a terminal."""
    reader, terminal = os.openpty()
    process = subprocess.Popen([CIUIC, *arguments], cwd=work.path, stdin=subprocess.DEVNULL, stdout=terminal,
                               stderr=terminal, env=clean_environment({"TERM": "xterm", **(env or {})}))
    os.close(terminal)
    output = b""
    while True:
        try:
            some = os.read(reader, 4096)
        except OSError:
            break
        if not some:
            break
        output += some
    os.close(reader)
    return process.wait(), output.decode()


def test_progress_bar_on_a_terminal(work):
    work.config({"run.steps": 20})
    code, output = in_a_terminal(work, "train", "run.toml")
    assert code == 0 and re.search(r"\[#+\.*\].*20/20.*loss.*tokens/s.*left", output), output
    assert "step 3/20" not in output
    code, output = in_a_terminal(work, "train", "run.toml", "--lines", "--set", "run.output=two")
    assert code == 0 and "step 3/20" in output


def test_no_color_is_obeyed(work):
    work.config({"run.steps": 2, "run.output": "warned", "precision.plugin": "fp32"})
    code, output = in_a_terminal(work, "train", "run.toml", "--lines", env={"NO_COLOR": "1"})
    assert code == 0 and not re.search(r"\x1b\[[0-9;]*m", output), output
