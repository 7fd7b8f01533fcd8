# SPDX-License-Identifier: MIT
"""ciuic bench step: what it finds adds up, and it leaves nothing behind."""
import json
import os
import signal

import pytest

from conftest import assert_fault, assert_no_run

BATCH_TOKENS = 8 * 32


def bench(work, *arguments, changes=None, code=0):
    work.config(changes)
    (work / "tmp").mkdir(exist_ok=True)
    result = work.run("bench", "step", "run.toml", *arguments, env={"TMPDIR": str(work / "tmp")})
    assert result.code == code, str(result)
    assert_no_run(work)
    return result


@pytest.mark.parametrize("ranks", [1, 2])
def test_figures_add_up(work, ranks):
    result = bench(work, "--steps", "4", "--ranks", str(ranks), "--format", "json")
    found = json.loads(result.out)
    assert not list((work / "tmp").iterdir()), "its folder is left"
    assert found["run"]["world_size"] == ranks and found["run"]["tokens_per_step"] == BATCH_TOKENS
    step = found["step_seconds"]
    assert len(step["all"]) == 4 and step["p10"] <= step["median"] <= step["p90"]
    assert found["tokens_per_second"]["median"] == pytest.approx(BATCH_TOKENS / step["median"])
    assert sum(found["phase_seconds"].values()) == pytest.approx(step["mean"])
    if ranks == 1:  # with more, the mean is of all ranks and the list of rank 0
        assert sum(step["all"]) / 4 == pytest.approx(step["mean"], rel=0.01), "a clock that is read twice"
    parts = sum(m["forward_seconds"] + m["backward_seconds"] for m in found["modules"])
    assert parts == pytest.approx(found["phase_seconds"]["forward"] + found["phase_seconds"]["backward"])
    names = {m["name"] for m in found["modules"]}
    assert {"attention", "router", "experts", "norms", "loss", "embedding", "dense_feed_forward"} <= names
    flops = sum(m["forward_flops"] + m["backward_flops"] for m in found["modules"])
    assert flops * ranks == pytest.approx(found["model"]["flops_per_token"] * BATCH_TOKENS)
    assert all(rate > 0 for side in ("before", "after", "own_products") for rate in found["gemm"][side])
    assert all(m["least_bytes"] > 0 for m in found["modules"] if m["forward_flops"] > 0) and found["memory"]["copy_bytes_per_second"] > 1e8
    storage = found["tensor_storage"]
    assert storage["system_allocations_per_step"] == storage["system_bytes_per_step"] == 0, "nothing is allocated after the second step"
    assert storage["arena_blocks_per_step"] > 10 and storage["arena_bytes"] > 1e6
    assert len(found["peak_rss_bytes"]["ranks"]) == ranks and found["peak_rss_bytes"]["sum"] > 50e6
    startup = found["startup"]
    assert startup["seconds"] == pytest.approx(sum(v for k, v in startup.items() if k != "seconds"))
    assert {"launch", "libraries", "plugins", "rendezvous", "data", "session", "model", "first_step"} <= set(startup)


def test_text_shows_the_parts(work):
    result = bench(work, "--steps", "2")
    for text in ("tokens/s", "of the GEMM rate", "where a step's time goes", "experts", "start to first step"):
        assert text in result.out, str(result)


def test_a_short_run_is_made_longer_and_tokens_are_not(work):
    bench(work, "--steps", "3", changes={"run.steps": 2})
    result = bench(work, "--steps", "3", changes={"run.steps": None, "run.tokens": 2 * BATCH_TOKENS}, code=2)
    assert "the run ended after 2 steps" in result.err, str(result)


def test_what_cannot_be_measured_is_refused(work):
    work.config()
    for arguments, words in ((["bench"], "expected step"), (["bench", "comm"], "expected step"),
                             (["bench", "step"], "no FILE"), (["bench", "step", "run.toml", "--warmup", "1"], "2 or more"),
                             (["bench", "step", "run.toml", "--format", "xml"], "text or json")):
        assert_fault(work.run(*arguments), 2, words)
    pinned = work.run("bench", "step", "run.toml", "--pin", "--set", "run.threads=1000")
    assert_fault(pinned, 4, "no cores of its own", seconds=30)


def endless(work, ranks):
    """The process of a bench that somebody has to end, and its ranks."""
    work.config()
    (work / "tmp").mkdir()
    process = work.start("bench", "step", "run.toml", "--steps", "100000", "--ranks", str(ranks), env={"TMPDIR": str(work / "tmp")})
    return process, work.ranks(ranks)


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_stop_ends_it_and_leaves_nothing(work, ranks):
    process, _ = endless(work, ranks)
    process.signal(signal.SIGTERM)
    result = process.wait(30)
    assert result.code == 75, str(result)
    assert "nothing was measured" in result.err and "checkpoint" not in result.err, str(result)
    assert not list((work / "tmp").iterdir()), "its folder is left"


def test_a_killed_rank_is_named_and_so_is_its_log(work):
    process, pids = endless(work, 2)
    os.kill(pids[1], signal.SIGKILL)
    result = process.wait(30)
    left, = (work / "tmp").glob("ciuic-bench-*")
    assert result.code == 5 and "rank 1 was ended by signal 9" in result.err, str(result)
    assert f"what the ranks said is in {left}/log" in result.err and "checkpoint" not in result.err, str(result)


def test_the_first_step_line_has_startup(work):
    work.train(changes={"run.steps": 2})
    first, second = work.metrics().of("step")
    assert first["startup"]["seconds"] > 0 and "startup" not in second
    work.train(changes={"run.steps": 3})
    assert "startup" in work.metrics().of("step")[-1], "each attempt has one"
