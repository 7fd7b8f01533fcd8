# SPDX-License-Identifier: MIT
"""What a run leaves and prints, its repetition bit for bit, and where it goes on from."""
import re
import tomllib

import pytest

from conftest import TINY, assert_no_partial_files, flip_byte

STEP_FIELDS = """step attempt tokens loss learning_rate grad_norm grad_norm_clipped loss_scale skipped_steps step_seconds
    tokens_per_second forward_seconds backward_seconds optimizer_seconds communication_seconds
    communication_exposed_seconds data_seconds rss_bytes device_memory_bytes""".split()
STEPS = 12
BATCH_TOKENS = 8 * 32


@pytest.fixture(scope="module")
def done(shared):
    """A finished run of two ranks."""
    shared.result = shared.train("--ranks", "2", changes={"run.steps": STEPS})
    return shared


def numbers(line):
    return {k: v for k, v in line.items() if isinstance(v, (int, float)) and not isinstance(v, bool)}


def test_run_line(done):
    runs = done.metrics().of("run")
    assert len(runs) == 1 and done.metrics().lines[0] == runs[0]
    assert runs[0]["attempt"] == 1 and runs[0]["world_size"] == 2 and runs[0]["parameters"] > 10000
    assert set(runs[0]["plugins"]) == {"batch_scheduler", "communicator", "sharding", "optimizer", "precision", "checkpoint", "profiler"}
    assert runs[0]["plugins"]["communicator"] in ("shm", "gloo"), "what auto chose"
    assert runs[0]["config_hash"] and runs[0]["versions"]["ciuic"] and runs[0]["versions"]["LibTorch"]


def test_step_lines_have_every_field(done):
    steps = done.metrics().of("step")
    assert [line["step"] for line in steps] == list(range(1, STEPS + 1))
    for line in steps:
        assert not [f for f in STEP_FIELDS if f not in line], line
        assert not [f for f in STEP_FIELDS if not isinstance(line[f], (int, float))], line
        assert line["attempt"] == 1 and line["tokens"] == line["step"] * BATCH_TOKENS, line
        assert line["skipped_steps"] == 0 and line["loss_scale"] == 1 and line["learning_rate"] == 3e-3, line
        assert line["grad_norm_clipped"] <= 1.0 + 1e-9 and line["grad_norm_clipped"] <= line["grad_norm"], line
        assert line["device_memory_bytes"] == 0 and line["rss_bytes"] > 10e6, line
        parts = sum(line[f"{p}_seconds"] for p in ("forward", "backward", "optimizer", "data"))
        assert 0 < parts <= line["step_seconds"] * 1.05, line
        assert line["tokens_per_second"] == pytest.approx(BATCH_TOKENS / line["step_seconds"], rel=1e-6), line
        assert all(v >= 0 for v in numbers(line).values()), line


def test_communication_of_a_step_lies_within_it(work):
    work.train("--ranks", "2", changes={"checkpoint.every": "1 steps", "run.steps": 20})
    for line in work.metrics().of("step"):
        assert line["communication_exposed_seconds"] <= line["communication_seconds"] <= line["step_seconds"], line


def test_numbers_are_shortest_decimals(done):
    for line in done.metrics().texts:
        for name, text in line.items():
            if isinstance(text, str) and re.fullmatch(r"-?[0-9][0-9.e+-]*", text) and ("." in text or "e" in text):
                shortest = repr(float(text))
                digits = [t.replace(".", "").replace("-", "").split("e")[0].strip("0") for t in (text, shortest)]
                assert digits[0] == digits[1], f"{name}: {text}, shortest is {shortest}"


def test_validation_before_every_so_often_and_last(done):
    lines = done.metrics().of("validation")
    assert [line["step"] for line in lines] == [0, 5, 10, 12]
    assert all(line["tokens"] == 8 * 32 for line in lines)
    assert [line["type"] for line in done.metrics().lines][:3] == ["run", "validation", "step"]
    assert 5.2 < lines[0]["loss"] < 5.9, "guessing among 259 bytes costs 5.56"


def test_end_line(done):
    last = done.metrics().lines[-1]
    assert last["type"] == "end" and last["exit_code"] == 0 and last["seconds"] > 0
    assert len(last["rss_peak_bytes"]) == 2 and all(p > 10e6 for p in last["rss_peak_bytes"])


def test_loss_falls(done):
    metrics = done.metrics()
    assert metrics.losses[-1] < metrics.losses[0] - 0.5
    assert metrics.validations[STEPS] < metrics.validations[0] - 0.5


def test_folder(done):
    names = {str(p.relative_to(done / "out")) for p in (done / "out").rglob("*")}
    assert {"metrics.jsonl", "config.resolved.toml", "log/rank-0.log", "log/rank-1.log", "checkpoints/latest",
            "checkpoints/step-00000012"} <= names, names
    assert (done / "out/checkpoints/latest").read_text().strip() == "step-00000012"
    assert_no_partial_files(done / "out")


def test_terminal_shows_a_line_a_step_and_the_folder(done):
    lines = done.result.out.splitlines()
    assert len([line for line in lines if re.match(r"step \d+/12 .*loss .*tokens/s.*left", line)]) == STEPS
    assert "out" in done.result.out
    assert "\x1b" not in done.result.out + done.result.err


def test_quiet_says_nothing(work):
    result = work.train("--quiet", changes={"run.steps": 2, "run.ranks": 2})
    assert (result.out, result.err) == ("", "")


def test_finished_run_says_so(done):
    before = done.metrics().columns()
    result = done.train("--ranks", "2")
    assert "finished" in result.out and "12" in result.out
    assert done.metrics().columns() == before and done.checkpoints() == [5, 10, 12]
    assert [line["attempt"] for line in done.metrics().of("run")][:2] == [1, 2]


def test_run_goes_on_when_steps_are_raised(work):
    work.train(changes={"run.steps": 12})
    whole = work.metrics().columns()
    work.train("--set", "run.output=short", "--set", "run.steps=7")
    work.train("--set", "run.output=short")
    assert work.metrics("short").columns() == whole


def test_same_file_twice_gives_the_same_bytes(done):
    done.train("--ranks", "2", "--set", "run.output=again")
    assert done.metrics("again").columns() == done.metrics().columns()
    assert len(done.metrics().column("loss")) == STEPS


def test_resolved_file_runs_again_by_itself(done):
    text = (done / "out/config.resolved.toml").read_text()
    resolved = tomllib.loads(text)
    for key, value in TINY.items():
        table, name = key.rsplit(".", 1)
        here = resolved
        for part in table.split("."):
            here = here[part]
        if key not in ("run.ranks", "run.steps"):
            assert here[name] == value, key
    assert resolved["run"]["ranks"] == 2 and resolved["run"]["steps"] == STEPS
    assert resolved["optimizer"]["adamw"]["beta2"] == 0.95, "defaults are written out"
    (done / "copy.toml").write_text(text)
    result = done.run("train", "copy.toml", "--set", "run.output=copy")
    assert result.code == 0, result
    assert done.metrics("copy").columns() == done.metrics().columns()


def test_another_seed_gives_another_run(done):
    done.train("--ranks", "2", "--set", "run.output=seed", "--set", "run.seed=8")
    assert done.metrics("seed").losses != done.metrics().losses


def test_resume_none_moves_the_old_folder_aside(work):
    work.train(changes={"run.steps": 3})
    first = (work / "out/metrics.jsonl").read_text()
    result = work.train("--resume", "none")
    assert "out.1" in result.out + result.err
    assert (work / "out.1/metrics.jsonl").read_text() == first
    assert work.metrics().of("run")[0]["attempt"] == 1 and len(work.metrics().of("run")) == 1
    work.train("--resume", "none")
    assert (work / "out.1/metrics.jsonl").read_text() == first and (work / "out.2/metrics.jsonl").exists()
    assert work.metrics().columns() == work.metrics("out.1").columns() == work.metrics("out.2").columns()


def test_resume_from_a_given_checkpoint(work):
    work.train(changes={"run.steps": 10})
    whole = work.metrics().columns()
    result = work.train("--resume", "out/checkpoints/step-00000005", "--set", "run.output=other")
    assert "step-00000005" in result.out + result.err
    joined = work.metrics("other").columns()
    assert joined == {name: {s: v for s, v in column.items() if s > 5} for name, column in whole.items()}


def test_resume_from_nothing_is_refused(work):
    work.config()
    result = work.run("train", "run.toml", "--resume", "nowhere/step-00000005")
    assert result.code in (2, 6) and "nowhere/step-00000005" in result.last_line, result


def test_torn_last_line_is_cut_off(work):
    work.train(changes={"run.steps": 10})
    whole = work.metrics().columns()
    path = work / "out/metrics.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    kept = [line for line in lines if '"type": "end"' not in line]
    path.write_text("".join(kept[:-3]) + kept[-3][:57])
    flip_byte(work.checkpoint(10) / "shard-00000-of-00001.safetensors")
    work.train()
    assert work.metrics().columns() == whole
    assert [line["attempt"] for line in work.metrics().of("run")] == [1, 2]


@pytest.mark.parametrize("damage", ["flipped byte", "flipped index", "missing shard", "cut shard", "no index"])
def test_damaged_newest_checkpoint_is_skipped_with_a_warning(work, damage):
    work.train(changes={"run.steps": 10, "run.ranks": 2})
    whole = work.metrics().columns()
    newest = work.checkpoint(10)
    shard = newest / "shard-00001-of-00002.safetensors"
    if damage == "flipped byte":
        flip_byte(shard)
    elif damage == "flipped index":
        flip_byte(newest / "index.json", 300)
    elif damage == "missing shard":
        shard.unlink()
    elif damage == "cut shard":
        shard.write_bytes(shard.read_bytes()[:-100])
    else:
        (newest / "index.json").unlink()
    result = work.train()
    warnings = [line for line in result.err.splitlines() if "step-00000010" in line and "warn" in line]
    assert len(warnings) == 1, result
    assert work.metrics().of("run")[1]["start_step"] == 5, result
    assert work.metrics().columns() == whole
    assert work.run("checkpoint", "verify", "out").code == 0


def test_all_checkpoints_damaged_starts_again(work):
    work.train(changes={"run.steps": 6})
    whole = work.metrics().columns()
    for step in work.checkpoints():
        flip_byte(work.checkpoint(step) / "shard-00000-of-00001.safetensors")
    result = work.train()
    assert result.err.count("warn") >= 2, result
    assert work.metrics().columns() == whole and len(work.metrics().validations) == len({0, 5, 6})


def test_changed_settings_are_listed_in_one_warning(work):
    work.train(changes={"run.steps": 5})
    result = work.train("--set", "run.steps=6", "--set", "optimizer.adamw.beta1=0.8", "--set",
                        "schedule.learning_rate=1e-3", "--set", "run.threads=2", "--set", "checkpoint.keep=7")
    warnings = [line for line in result.err.splitlines() if line.startswith("warn")]
    assert len(warnings) == 1, result
    for said in ("beta1", "0.9", "0.8", "learning_rate", "0.003", "0.001"):
        assert said in warnings[0], result
    assert "checkpoint.keep" not in warnings[0], result


@pytest.mark.parametrize("keep, kept", [(1, [10]), (2, [8, 10]), (0, [2, 4, 6, 8, 10])])
def test_keep(work, keep, kept):
    work.train(changes={"run.steps": 10, "checkpoint.every": "2 steps", "checkpoint.keep": keep})
    assert work.checkpoints() == kept
    assert (work / "out/checkpoints/latest").read_text().strip() == "step-00000010"
    assert_no_partial_files(work / "out")


def test_tag_is_a_second_name(work):
    work.train(changes={"run.steps": 4, "checkpoint.every": "2 steps", "checkpoint.tag": "epoch-{epoch}",
                        "checkpoint.keep": 0})
    tag = work / "out/checkpoints/epoch-0"
    assert tag.resolve() == work.checkpoint(4).resolve()
    assert work.run("checkpoint", "verify", "out/checkpoints/epoch-0").code == 0
    result = work.run("generate", "--model", "out/checkpoints/epoch-0", "--prompt", "the", "--max-tokens", "2")
    assert result.code == 0, result
    work.train("--resume", "out/checkpoints/epoch-0", "--set", "run.output=two", "--set", "run.steps=6")
    assert work.metrics("two").of("run")[0]["start_step"] == 4


def test_checkpoint_never_still_keeps_what_a_stop_saves(work):
    work.train(changes={"run.steps": 4, "checkpoint.every": "never"})
    assert work.metrics().steps.keys() == {1, 2, 3, 4}


def test_tokens_set_the_length(work):
    work.train(changes={"run.steps": None, "run.tokens": 5 * BATCH_TOKENS - 3})
    assert work.metrics().of("step")[-1]["step"] == 5


def test_validation_never(work):
    work.train(changes={"run.steps": 3, "validation.every": "never", "validation.sequences": None})
    assert not [s for s in work.metrics().validations if s not in (0, 3)]


def test_schedule_is_that_of_the_contract(work):
    work.config({"run.steps": 8, "schedule.learning_rate": None})
    with open(work / "run.toml", "a") as file:
        file.write('\n[schedule]\nlearning_rate = [{ until = "4 steps", to = 4e-3, shape = "linear" }, '
                   '{ until = "6 steps", to = 4e-3, shape = "constant" }, { until = "end", to = 2e-3, shape = "linear" }]\n')
    work.train()
    rates = [line["learning_rate"] for line in work.metrics().of("step")]
    assert rates == pytest.approx([1e-3, 2e-3, 3e-3, 4e-3, 4e-3, 4e-3, 3e-3, 2e-3], rel=1e-12)


def test_epochs_of_a_small_text_meet_without_a_gap(work):
    (work / "few.txt").write_text("abcdefgh" * 45)
    work.train(changes={"data.train": ["few.txt"], "run.steps": 8, "checkpoint.tag": "epoch-{epoch}",
                        "checkpoint.every": "1 epoch"})
    assert work.metrics().of("step")[-1]["tokens"] == 8 * BATCH_TOKENS
    assert work.checkpoints()
