# SPDX-License-Identifier: MIT
"""A run file that cannot be run: exit 2, one clear line (or all problems, each with its line), nothing written."""
import os

import pytest

from conftest import assert_fault, assert_no_run


def line_of(workspace, text, file="run.toml"):
    lines = (workspace / file).read_text().splitlines()
    return next(i for i, line in enumerate(lines, 1) if line.startswith(text))


def test_missing_file(work):
    assert_fault(work.run("train", "nowhere.toml"), 2, "nowhere.toml", "No such file")


def test_file_is_a_folder(work):
    (work / "folder.toml").mkdir()
    assert_fault(work.run("train", "folder.toml"), 2, "folder.toml", "is a folder; expected a TOML file")


@pytest.mark.parametrize("command", [["train"], ["config", "check"], ["config", "show"], ["plugin", "lock"], ["evaluate", "--model", "m"]])
def test_file_is_a_pipe_that_nobody_writes_to(work, command):
    os.mkfifo(work / "pipe.toml")
    assert_fault(work.run(*command, "pipe.toml"), 2, "pipe.toml", "is a pipe; expected a TOML file")


def test_file_is_a_device_without_end(work):
    assert_fault(work.run("config", "check", "/dev/zero"), 2, "/dev/zero", "is a device; expected a TOML file")


def test_empty_file_lacks_a_model(work):
    (work / "run.toml").write_text("")
    assert_fault(work.run("train", "run.toml"), 2, "run.toml", "model.preset or model.from")


@pytest.mark.parametrize("text, line", [
    ("[run]\nsteps = = 3\n", 2),
    ("[run\nsteps = 3\n", 1),
    ("[run]\nsteps = 3\nsteps = 4\n", 3),
    ("[run]\nname = \"open\n", 2),
])
def test_malformed_toml_names_file_and_line(work, text, line):
    (work / "run.toml").write_text(text)
    assert_fault(work.run("train", "run.toml"), 2, f"run.toml:{line}:", "TOML")
    assert_no_run(work)


def test_toml_that_is_not_utf8(work):
    (work / "run.toml").write_bytes(b"[run]\nname = \"\xff\xfe\"\n")
    assert_fault(work.run("train", "run.toml"), 2, "run.toml:2")


@pytest.mark.parametrize("command", [["train"], ["config", "check"]])
def test_all_problems_at_once_each_with_its_line_and_the_nearest_key(work, command):
    work.config({"run.steps": "ten", "run.sed": 3, "run.device": "gpu", "data.validation_fraction": 1.5,
                 "optimizer.gradient_clip_nrm": 1.0})
    result = work.run(*command, "run.toml")
    places = {text: f"run.toml:{line_of(work, text)}: " for text in
              ("steps =", "sed =", "device =", "validation_fraction =", "gradient_clip_nrm =")}
    assert_fault(result, 2, *places.values(), "5 problems", "did you mean seed?", "did you mean gradient_clip_norm?")
    by_line = {place: next(line for line in result.err.splitlines() if line.startswith(place))
               for place in places.values()}
    assert '"ten"' in by_line[places["steps ="]], result
    assert '"gpu"' in by_line[places["device ="]] and "cpu" in by_line[places["device ="]], result
    assert "1.5" in by_line[places["validation_fraction ="]], result
    assert_no_run(work)


@pytest.mark.parametrize("key, nearest", [("optimizer.gradient_clip", "gradient_clip_norm"), ("model.hidden", "hidden_")])
def test_beginning_of_a_key_names_the_key(work, key, nearest):
    work.config({key: 1})
    assert_fault(work.run("train", "run.toml"), 2, f"{key} is no key", nearest)


def test_problems_of_plugin_tables_at_once(work):
    work.config({"optimizer.adamw.beta3": 0.9, "optimizer.adamw.beta2": 1.5, "checkpoint.sharded.timout": "1m"})
    assert_fault(work.run("train", "run.toml"), 2, f"run.toml:{line_of(work, 'beta3')}: ",
                 f"run.toml:{line_of(work, 'beta2')}: ", f"run.toml:{line_of(work, 'timout')}: ", "timeout", "1.5")
    assert_no_run(work)


def test_problems_of_host_and_plugins_at_once(work):
    work.config({"run.sed": 3, "optimizer.adamw.beta3": 0.9})
    assert_fault(work.run("train", "run.toml"), 2, f"run.toml:{line_of(work, 'sed')}: ",
                 f"run.toml:{line_of(work, 'beta3')}: ")


@pytest.mark.parametrize("changes, said", [
    ({"run.steps": 0}, ["run.steps", "0", "1 or more"]),
    ({"run.steps": -4}, ["run.steps", "-4"]),
    ({"run.steps": 10, "run.tokens": "2B"}, ["run.steps", "run.tokens"]),
    ({"run.ranks": 0}, ["run.ranks", "0"]),
    ({"communicator.timeout": "soon"}, ["communicator.timeout", "soon"]),
    ({"checkpoint.every": "100"}, ["checkpoint.every", "100"]),
    ({"validation.every": "often"}, ["validation.every", "often"]),
    ({"schedule.learning_rate": "fast"}, ["schedule.learning_rate", "fast"]),
    ({"schedule.learning_rate": -1.0}, ["schedule.learning_rate", "-1"]),
    ({"run.rendezvous": "udp://x"}, ["run.rendezvous", "udp://x"]),
    ({"data.order": "random"}, ["data.order", "random", "shuffled", "sequential"]),
    ({"model.preset": "huge"}, ["model.preset", "huge", "tiny"]),
    ({"model.hiden_size": 8}, ["model.hiden_size", "did you mean hidden_size"]),
    ({"data.sequence_tokens": 4096}, ["data.sequence_tokens", "4096", "max_position_embeddings", "1024"]),
])
def test_bad_value_names_key_and_value(work, changes, said):
    work.config(changes)
    assert_fault(work.run("train", "run.toml"), 2, "run.toml:", *said)
    assert_no_run(work)


def test_override_names_itself(work):
    work.config()
    assert_fault(work.run("train", "run.toml", "--set", "run.stepz=4"), 2, "--set", "run.stepz", "steps")
    assert_fault(work.run("train", "run.toml", "--set", "run.steps"), 2, "--set", "run.steps")
    assert_no_run(work)


@pytest.mark.parametrize("changes, said", [
    ({"plugins.lock": "ciuic.lock"}, ["plugins.lock"]),
    ({"checkpoint.asynchronous": True}, ["checkpoint.asynchronous", "false"]),
    ({"data.tokenizer": "tokenizer.json"}, ["tokenizer.json", "No such file"]),
    ({"model.num_nextn_predict_layers": -1}, ["num_nextn_predict_layers", "0 to 1024"]),
    ({"model.topk_method": "greedy"}, ["topk_method", "greedy", "noaux_tc"]),
    ({"model.scoring_func": "softmax"}, ["scoring_func", "softmax", "sigmoid"]),
    ({"model.rope_interleave": False, "model.model_type": "deepseek_v2"}, ["rope_interleave", "scoring_func"]),
    ({"model.hidden_act": "gelu"}, ["hidden_act", "silu"]),
    ({"model.model_type": "llama"}, ["model_type", "llama", "deepseek_v3"]),
])
def test_what_is_not_built_yet_is_refused_by_name(work, changes, said):
    work.config(changes)
    assert_fault(work.run("train", "run.toml"), 2, *said)
    assert_no_run(work)


def test_refused_model_field_names_its_own_line(work):
    work.config({"model.topk_method": "greedy"})
    assert_fault(work.run("train", "run.toml"), 2, f"run.toml:{line_of(work, 'topk_method')}: ")


@pytest.mark.parametrize("sequences, micro, ranks, equation", [
    (9, 2, 2, "9 / 4 = 2.25"),
    (8, 3, 1, "8 / 3"),
    (2, 2, 2, "2 / 4 = 0.5"),
])
def test_batch_that_does_not_divide_shows_the_equation(work, sequences, micro, ranks, equation):
    work.config({"batch_scheduler.fixed.sequences": sequences, "batch_scheduler.fixed.micro_sequences": micro,
                 "run.ranks": ranks})
    assert_fault(work.run("train", "run.toml"), 2, "run.toml:", f"sequences = {sequences}", f"micro_sequences {micro}",
                 f"world {ranks}", equation, remedy="nearest")
    assert_no_run(work)


def test_local_communicator_on_two_ranks(work):
    work.config({"communicator.plugin": "local", "run.ranks": 2})
    assert_fault(work.run("train", "run.toml"), 2, "run.toml:", "communicator", "local", "one rank", "2",
                 remedy="auto")
    assert_no_run(work)
