# SPDX-License-Identifier: MIT
"""Numbers gone bad: steps that are skipped, runs that end for it, and what they say."""
import json

import pytest

from conftest import assert_fault

LIMIT = 3
# Each update multiplies the weights by -1e8, so a few of them are beyond fp32.
EXPLODES = {"run.steps": 30, "schedule.learning_rate": 1e6, "optimizer.adamw.weight_decay": 100.0,
            "optimizer.max_skipped_steps": LIMIT, "checkpoint.every": "never", "validation.every": "never"}


def first_bad(steps):
    """The number of good steps, which come before all bad ones."""
    bad = ["non_finite" in line for line in steps]
    assert bad == sorted(bad) and not bad[0] and bad[-1]
    return bad.index(True)


def test_bad_steps_in_a_row_end_the_run(work):
    result = work.train("--ranks", "2", changes=EXPLODES, code=7)
    steps = work.metrics().of("step")
    good = first_bad(steps)
    assert len(steps) == good + LIMIT + 1
    assert_fault(result, 7, "not finite", f"{LIMIT + 1} steps in a row", f"step={len(steps)}", remedy="learning rate", seconds=60)
    assert "rank=0" in result.err and "micro_batch=0" in result.err, "weights are bad everywhere, so at once"
    assert [line["skipped_steps"] for line in steps[good:]] == [1, 2, 3, 4]
    assert all(line["grad_norm"] is None for line in steps[good:])
    warnings = [line for line in result.err.splitlines() if "is skipped" in line]
    assert len(warnings) == LIMIT, "once for all ranks, and the last is the error"
    assert f"skipped in a row: {LIMIT} of at most {LIMIT}" in warnings[-1]
    assert "on rank 0, first in its micro-batch 0" in warnings[-1]


def test_none_is_skipped_where_the_limit_says_so(work):
    result = work.train(changes={**EXPLODES, "optimizer.max_skipped_steps": 0}, code=7)
    steps = work.metrics().of("step")
    assert first_bad(steps) == len(steps) - 1
    assert_fault(result, 7, "not finite", f"step={len(steps)}", remedy="learning rate", seconds=60)
    assert "is skipped" not in result.err


def test_a_bad_last_step_is_no_success(work):
    work.train(changes=EXPLODES, code=7)
    good = first_bad(work.metrics().of("step"))
    result = work.train("--resume", "none", changes={**EXPLODES, "run.steps": good + 1}, code=7)
    assert_fault(result, 7, "not finite", f"step={good + 1}", seconds=60)


ANSWERS = {"data.train": ["answers.jsonl"], "data.order": "sequential", "validation.every": "never", "optimizer.max_skipped_steps": 0,
           "schedule.learning_rate": 3e-4}


def write_answers(work, lengths, prompt):
    lines = [json.dumps({"prompt": "x" * prompt, "completion": "y" * length}) for length in lengths]
    (work / "answers.jsonl").write_text("\n".join(lines) + "\n")


def test_FieldBug_B031_targets_that_are_all_ignored(work):
    """A rank with only ignored labels brings nothing; a step in which all have is skipped, and is no overflow."""
    write_answers(work, [40] * 60, prompt=150)
    work.config({**ANSWERS, "run.steps": 12, "batch_scheduler.fixed.sequences": 2, "batch_scheduler.fixed.micro_sequences": 1})
    for ranks in (1, 2):
        work.train("--ranks", str(ranks), "--set", f"run.output=ranks-{ranks}")
    steps = work.metrics("ranks-2").of("step")
    empty = [line for before, line in zip([{"tokens": 0}] + steps, steps) if before["tokens"] == line["tokens"]]
    full = [line for line in steps if line not in empty]
    assert empty and full, "the data must have both"
    assert all(line["loss"] is None for line in empty) and all(line["loss"] > 0 for line in full)
    assert steps[-1]["skipped_steps"] == len(empty)
    alone = {line["step"]: line["loss"] for line in work.metrics("ranks-1").of("step")}
    assert [alone[line["step"]] for line in full] == pytest.approx([line["loss"] for line in full], rel=1e-5)


def test_FieldBug_B027_B028_B029_every_token_weighs_alike(work):
    """Rows with unequal numbers of targets, however they are split over micro-batches and ranks."""
    write_answers(work, [5 + 7 * i % 61 for i in range(300)], prompt=20)
    work.config({**ANSWERS, "run.steps": 20, "batch_scheduler.fixed.sequences": 8})
    runs = {}
    for ranks, rows in ((1, 8), (1, 1), (2, 2), (4, 1)):
        name = f"split-{ranks}-{rows}"
        work.train("--ranks", str(ranks), "--set", f"run.output={name}", "--set", f"batch_scheduler.fixed.micro_sequences={rows}")
        runs[name] = work.metrics(name)
    whole = runs["split-1-8"]
    tokens = [line["tokens"] for line in whole.of("step")]
    assert len({after - before for before, after in zip(tokens, tokens[1:])}) > 3, "steps must have unequal numbers of targets"
    for name, run in runs.items():
        assert [line["tokens"] for line in run.of("step")] == tokens, name
        assert run.losses[:3] == pytest.approx(whole.losses[:3], rel=1e-6), name
        assert run.losses == pytest.approx(whole.losses, rel=1e-5), name
        norms = [[line["grad_norm"] for line in r.of("step")] for r in (run, whole)]
        assert norms[0] == pytest.approx(norms[1], rel=1e-4), name
