# SPDX-License-Identifier: MIT
"""Schedules and growing batches: before a run (config show --schedule, the published recipes) and in one."""
import json
import signal

import pytest

from conftest import SOURCE, assert_fault, assert_no_run

TOKENS = 32  # of a row
STEPS = 60
RAMP = {
    "batch_scheduler.plugin": "ramp",
    "batch_scheduler.fixed.sequences": None,
    "batch_scheduler.fixed.micro_sequences": None,
    "batch_scheduler.ramp.sequences": 4,
    "batch_scheduler.ramp.ramp": ["16 by 300 samples"],
    "batch_scheduler.ramp.increment": 4,
    "batch_scheduler.ramp.micro_sequences": 2,
    "batch_scheduler.ramp.sequence_tokens": 8,
    "batch_scheduler.ramp.sequence_ramp": ["16 from 50 samples", "32 from 150 samples"],
}
CHANGES = {
    **RAMP,
    "run.ranks": 2,
    "run.steps": STEPS,
    "model.num_nextn_predict_layers": 1,
    "schedule.learning_rate": [
        {"until": "5 steps", "to": 3e-3, "shape": "linear"},
        {"until": f"{400 * TOKENS} tokens", "to": 1e-3, "shape": "cosine"},
        {"until": "end", "to": 1e-4, "shape": "sqrt"},
    ],
    "schedule.gradient_clip_norm": [{"until": "8 steps", "to": 2.0, "shape": "constant"},
                                    {"until": "end", "to": 0.5, "shape": "step"}],
    "schedule.mtp_loss_weight": [{"until": f"{200 * TOKENS} tokens", "to": 0.3, "shape": "constant"},
                                 {"until": "end", "to": 0.1, "shape": "step"}],
    "checkpoint.every": "20 steps",
    "validation.every": "30 steps",
}
VALUES = ("loss", "grad_norm", "grad_norm_clipped", "learning_rate", "tokens", "batch_sequences", "sequence_tokens",
          "gradient_clip_norm", "mtp_loss_weight", "mtp_loss")


def batches(steps):
    """What `ramp` says of these options: 4 + 12 x / 300 after x samples, whole fours."""
    out, consumed = [], 0
    for _ in range(steps):
        out.append(16 if consumed >= 300 else (4 + 12 * consumed // 300) // 4 * 4)
        consumed += out[-1]
    return out


def columns(metrics):
    return {name: metrics.column(name) for name in VALUES}


@pytest.fixture(scope="module")
def ramped(shared):
    """A run of two ranks whose batch, sequences, rate, clipping and loss weights change."""
    shared.train(changes=CHANGES, timeout=120)
    return shared


def test_a_ramped_run_trains_what_its_options_say(ramped):
    lines = ramped.metrics().of("step")
    assert [line["step"] for line in lines] == list(range(1, STEPS + 1))
    expected = batches(STEPS)
    assert [line["batch_sequences"] for line in lines] == expected
    total = 0
    for line, batch in zip(lines, expected):
        before = total // TOKENS
        total += batch * TOKENS
        assert line["tokens"] == total, line
        assert line["sequence_tokens"] == (8 if before < 50 else 16 if before < 150 else 32), line
        assert line["gradient_clip_norm"] == (2.0 if line["step"] <= 8 else 0.5), line
        assert line["grad_norm_clipped"] <= line["gradient_clip_norm"] * (1 + 1e-9), line
        assert line["mtp_loss_weight"] == (0.3 if total <= 200 * TOKENS else 0.1), line
    assert lines[4]["learning_rate"] == 3e-3
    assert lines[-1]["learning_rate"] == 1e-4
    assert lines[-1]["loss"] < lines[0]["loss"] - 0.5


def test_the_table_is_what_the_run_used(ramped):
    shown = json.loads(ramped.run("config", "show", "run.toml", "--schedule", "--json").out)
    assert shown["steps"] == STEPS and shown["tokens"] == ramped.metrics().of("step")[-1]["tokens"]
    steps = ramped.metrics().steps
    assert len(shown["points"]) > 15
    for point in shown["points"]:
        line = steps[point.pop("step")]
        assert point.pop("expert_bias_rate") == 0.001
        assert point == {name: line[name] for name in point}, line


def test_what_varies_is_not_there_when_it_does_not(work):
    work.train(changes={"run.steps": 2})
    fields = set(work.metrics().of("step")[0])
    assert not fields & {"batch_sequences", "sequence_tokens", "gradient_clip_norm", "expert_bias_rate", "mtp_loss_weight"}


def test_one_rank_and_two_train_the_same_samples(ramped):
    ramped.train("--ranks", "1", "--set", "run.output=one", timeout=120)
    one, two = ramped.metrics("one"), ramped.metrics()
    for name in ("tokens", "batch_sequences", "sequence_tokens", "learning_rate"):
        assert one.column(name) == two.column(name)
    assert two.losses[0] == pytest.approx(one.losses[0], rel=1e-6)
    assert two.losses == pytest.approx(one.losses, rel=1e-4)


@pytest.mark.parametrize("step", [3, 12, 37])
def test_stop_and_go_on_gives_the_same_bytes(ramped, work, step):
    work.config(CHANGES)
    process = work.start("train", "run.toml")
    work.wait_for_step(step, process)
    process.signal(signal.SIGTERM)
    assert process.wait(30).code == 75
    work.train(timeout=120)
    assert columns(work.metrics()) == columns(ramped.metrics())
    assert work.metrics().of("run")[1]["start_step"] >= step


def test_resume_from_a_checkpoint_inside_the_ramp(ramped, work):
    work.config(CHANGES)
    work.train("--resume", ramped / "out/checkpoints/step-00000020", timeout=120)
    whole = columns(ramped.metrics())
    assert columns(work.metrics()) == {n: {s: v for s, v in c.items() if s > 20} for n, c in whole.items()}


def test_tokens_set_the_length_of_a_ramped_run(work):
    tokens = 250 * TOKENS
    work.train(changes={**CHANGES, "run.steps": None, "run.tokens": tokens, "run.ranks": 1})
    lines = work.metrics().of("step")
    assert lines[-2]["tokens"] < tokens <= lines[-1]["tokens"]
    assert lines[-1]["step"] == work.metrics().of("run")[0]["steps"]


def test_a_length_that_does_not_divide_a_row(work):
    work.config({**RAMP, "batch_scheduler.ramp.sequence_tokens": 12, "batch_scheduler.ramp.sequence_ramp": None})
    result = work.run("train", "run.toml")
    assert result.code != 0 and "do not divide a row of data.sequence_tokens = 32" in result.err, result
    assert_no_run(work)


def test_a_point_that_is_none_is_told_by_config_check(work):
    work.config({**RAMP, "batch_scheduler.ramp.ramp": ["16 by 3 days"]})
    assert_fault(work.run("config", "check", "run.toml"), 2, "run.toml:", "\"16 by 3 days\" is no point", "469B tokens")


def test_phases_in_tokens_that_the_ramp_puts_out_of_order(work):
    work.config({**RAMP, "schedule.learning_rate": [{"until": "30 steps", "to": 1e-3, "shape": "linear"},
                                                    {"until": f"{100 * TOKENS} tokens", "to": 0.0, "shape": "linear"}]})
    assert_fault(work.run("config", "check", "run.toml"), 2, "phase 1 ends after", "before the one in front")


# ---- the published recipes ----


def recipe(work, name, *arguments, text=True):
    data = ["--set", f'data.train=["{work / "text.txt"}"]'] if text else []
    return work.run("config", *arguments[:1], SOURCE / f"configs/{name}-recipe.toml", *arguments[1:], *data)


@pytest.mark.parametrize("name", ["deepseek-v3", "deepseek-v2-lite"])
def test_recipes_pass_the_check(work, name):
    result = recipe(work, name, "check")
    assert result.code == 0, result
    assert recipe(work, name, "show", text=False).code == 0


def points(work, name):
    result = recipe(work, name, "show", "--schedule", "--json", text=False)
    assert result.code == 0, result
    return json.loads(result.out)


# arXiv:2412.19437, section 4.2.
def test_the_recipe_of_deepseek_v3_is_the_published_one(work):
    shown = points(work, "deepseek-v3")
    assert 14.8e12 <= shown["tokens"] < 14.8e12 + 15360 * 4096
    steps = {p["step"]: p for p in shown["points"]}
    assert steps[1]["learning_rate"] == pytest.approx(2.2e-4 / 2000, rel=1e-12)
    assert steps[2000]["learning_rate"] == 2.2e-4
    assert steps[1]["batch_sequences"] == 3072
    assert steps[shown["steps"]] == {
        "step": shown["steps"], "tokens": shown["tokens"], "batch_sequences": 15360, "sequence_tokens": 4096,
        "learning_rate": 7.3e-6, "expert_bias_rate": 0, "gradient_clip_norm": 1, "balance_loss_weight": 1e-4,
        "mtp_loss_weight": 0.1}
    for p in shown["points"]:
        tokens = p["tokens"]
        # The batch comes from the tokens before the step, of which it has at most 63M itself.
        assert p["batch_sequences"] == pytest.approx(3072 + 12288 * min(1, tokens / 469e9), abs=384 + 2), p
        assert p["batch_sequences"] % 384 == 0, p
        assert p["mtp_loss_weight"] == (0.3 if tokens <= 10e12 else 0.1), p
        assert p["expert_bias_rate"] == (0.001 if tokens <= 14.3e12 else 0), p
        if 14.3e12 < tokens <= 14.633e12:
            assert p["learning_rate"] == 2.2e-5, p
        if p["step"] >= 2000 and tokens <= 10e12:
            assert p["learning_rate"] == 2.2e-4, p


def test_the_recipe_of_deepseek_v2_lite_is_the_published_one(work):
    shown = points(work, "deepseek-v2-lite")
    assert {p["batch_sequences"] for p in shown["points"]} == {4608}
    for p in shown["points"]:
        share = p["tokens"] / 5.7e12
        if p["step"] >= 2000:
            expected = 4.2e-4 * (1 if share <= 0.8 else 0.316 if share <= 0.9 else 0.316**2)
            assert p["learning_rate"] == pytest.approx(expected, rel=1e-9), p


@pytest.mark.parametrize("locale, curve", [("C", "*"), ("C.UTF-8", chr(0x28C0))])
def test_the_table_has_plots_in_what_the_locale_can_show(work, locale, curve):
    result = work.run("config", "show", SOURCE / "configs/deepseek-v3-recipe.toml", "--schedule",
                      env={"LC_ALL": locale})
    assert result.code == 0 and result.seconds < 5, result
    lines = result.out.splitlines()
    assert lines[0].split()[:4] == ["step", "tokens", "sequences", "learning_rate"]
    assert curve in result.out and "14.8T tokens" in result.out and "\x1b" not in result.out
    assert (locale == "C") == result.out.isascii()


def test_schedule_belongs_to_show(work):
    work.config()
    assert work.run("config", "check", "run.toml", "--schedule").code == 2
    assert work.run("config", "show", "run.toml", "--json").code == 2
