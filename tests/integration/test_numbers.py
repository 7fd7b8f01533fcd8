# SPDX-License-Identifier: MIT
"""Numbers gone bad: steps that are skipped, runs that end for it, and what they say."""
import json

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
    assert [line["skipped_steps"] for line in steps[good:]] == [1, 2, 3, 4]
    assert all(line["grad_norm"] is None for line in steps[good:])
    warnings = [line for line in result.err.splitlines() if "is skipped" in line]
    assert len(warnings) == LIMIT, "once for all ranks, and the last is the error"
    assert f"skipped in a row: {LIMIT} of at most {LIMIT}" in warnings[-1]


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


def test_steps_without_a_target_are_skipped(work):
    """Ranks and steps that have only ignored labels bring nothing, and are no overflow."""
    lines = [json.dumps({"prompt": "x" * 150, "completion": "y" * 40}) for _ in range(60)]
    (work / "answers.jsonl").write_text("\n".join(lines) + "\n")
    work.train("--ranks", "2", changes={
        "data.train": ["answers.jsonl"], "data.order": "sequential", "run.steps": 12, "validation.every": "never",
        "batch_scheduler.fixed.sequences": 2, "batch_scheduler.fixed.micro_sequences": 1, "optimizer.max_skipped_steps": 0})
    steps = work.metrics().of("step")
    empty = [line for before, line in zip([{"tokens": 0}] + steps, steps) if before["tokens"] == line["tokens"]]
    full = [line for line in steps if line not in empty]
    assert empty and full, "the data must have both"
    assert all(line["loss"] is None for line in empty) and all(line["loss"] > 0 for line in full)
    assert steps[-1]["skipped_steps"] == len(empty)
