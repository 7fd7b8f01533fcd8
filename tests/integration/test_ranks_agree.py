# SPDX-License-Identifier: MIT
"""The same run on one and two ranks, started by ciuic or by another launcher."""
import os
import signal
import time

import pytest

from conftest import free_port

STEPS = 50
CHANGES = {"run.steps": STEPS, "schedule.learning_rate": 3e-4, "checkpoint.every": "never", "validation.every": "25 steps"}


@pytest.fixture(scope="module")
def runs(shared):
    """Metrics of the run on one and on two ranks."""
    shared.config(CHANGES)
    for ranks in (1, 2):
        shared.train("--ranks", str(ranks), "--set", f"run.output=ranks-{ranks}")
    return {ranks: shared.metrics(f"ranks-{ranks}") for ranks in (1, 2)}


def start_ranks(work, world=2, arguments=()):
    """What another launcher does: one `ciuic train` per rank."""
    port = free_port()
    processes = []
    for rank in range(world):
        processes.append(work.start("train", "run.toml", *arguments, env={
            "RANK": rank, "WORLD_SIZE": world, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}))
    return processes


def test_losses_agree(runs):
    one, two = runs[1], runs[2]
    assert one.of("run")[0]["world_size"] == 1 and two.of("run")[0]["world_size"] == 2
    assert len(one.losses) == len(two.losses) == STEPS
    assert two.losses[0] == pytest.approx(one.losses[0], rel=1e-6)
    assert two.losses == pytest.approx(one.losses, rel=1e-5)
    assert one.losses[-1] < one.losses[0] - 0.05


def test_validation_and_norms_agree(runs):
    assert list(runs[1].validations) == list(runs[2].validations) == [0, 25, 50]
    assert list(runs[2].validations.values()) == pytest.approx(list(runs[1].validations.values()), rel=1e-5)
    norms = [[line["grad_norm"] for line in runs[r].of("step")] for r in (1, 2)]
    assert norms[1] == pytest.approx(norms[0], rel=1e-4)
    assert [line["tokens"] for line in runs[1].of("step")] == [line["tokens"] for line in runs[2].of("step")]


def test_three_and_four_ranks_agree(work, runs):
    work.config({**CHANGES, "batch_scheduler.fixed.sequences": 12, "run.steps": 10, "run.threads": 1,
                 "batch_scheduler.fixed.micro_sequences": 1})
    losses = []
    for ranks in (1, 3, 4):
        work.train("--ranks", str(ranks), "--set", f"run.output=ranks-{ranks}")
        losses.append(work.metrics(f"ranks-{ranks}").losses)
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)
    assert losses[2] == pytest.approx(losses[0], rel=1e-5)


def test_micro_batches_agree(work, runs):
    work.config({**CHANGES, "batch_scheduler.fixed.micro_sequences": 8})
    work.train()
    assert work.metrics().losses == pytest.approx(runs[1].losses, rel=1e-5)


def test_run_goes_on_with_another_number_of_ranks(work, runs):
    work.config({**CHANGES, "checkpoint.every": "10 steps"})
    for ranks, steps in ((2, 20), (1, 40), (2, 50)):
        work.train("--ranks", str(ranks), "--set", f"run.steps={steps}")
    assert work.metrics().losses == pytest.approx(runs[1].losses, rel=1e-5)


def test_another_launcher_gives_the_same_bytes(work, runs):
    work.config(CHANGES)
    results = [p.wait() for p in start_ranks(work)]
    assert [r.code for r in results] == [0, 0], results
    assert work.metrics().columns() == runs[2].columns()
    assert len([line for line in results[0].out.splitlines() if line.startswith("step ")]) == STEPS
    assert results[1].out == "", "only rank 0 speaks"
    assert results[1].err == "", results[1]


def test_world_of_one_under_a_launcher(work, runs):
    work.config({**CHANGES, "run.steps": 5})
    (process,) = start_ranks(work, world=1)
    result = process.wait()
    assert result.code == 0, result
    assert work.metrics().column("loss") == {s: v for s, v in runs[1].column("loss").items() if s <= 5}


def test_run_ranks_is_ignored_with_a_note(work):
    work.config({**CHANGES, "run.steps": 3, "run.ranks": 1})
    results = [p.wait() for p in start_ranks(work)]
    assert [r.code for r in results] == [0, 0], results
    assert "run.ranks" in results[0].err and "ignored" in results[0].err, results[0]
    assert work.metrics().of("run")[0]["world_size"] == 2


def test_ranks_option_equal_to_world_size_is_fine(work):
    work.config({**CHANGES, "run.steps": 3})
    assert [p.wait().code for p in start_ranks(work, arguments=["--ranks", "2"])] == [0, 0]


@pytest.mark.parametrize("rendezvous", ["tcp", "file"])
def test_other_ways_to_meet(work, runs, rendezvous):
    where = f"tcp://127.0.0.1:{free_port()}" if rendezvous == "tcp" else f"file://{work / 'meet'}"
    work.config({**CHANGES, "run.ranks": 2, "run.steps": 5, "run.rendezvous": where})
    work.train()
    assert work.metrics().column("loss") == {s: v for s, v in runs[2].column("loss").items() if s <= 5}


@pytest.mark.parametrize("victim", [0, 1])
def test_killed_rank_of_another_launcher_ends_the_other(work, victim):
    work.config({**CHANGES, "run.steps": 100000})
    processes = start_ranks(work)
    work.wait_for_step(10, processes[0])
    begin = time.monotonic()
    os.kill(processes[victim].pid, signal.SIGKILL)
    other = processes[1 - victim].wait(15)
    assert time.monotonic() - begin < 10
    assert other.code == 5, other
    assert other.last_line.startswith("ciuic: error: "), other
    assert f"rank {victim}" in other.last_line or f"rank={victim}" in other.last_line, other
    assert work.run("train", "run.toml", "--set", "run.steps=5").code == 0, "the folder is free again"


def test_stop_of_one_rank_of_another_launcher_stops_both(work):
    work.config({**CHANGES, "run.steps": 100000})
    processes = start_ranks(work)
    work.wait_for_step(10, processes[0])
    processes[1].signal(signal.SIGTERM)
    results = [p.wait(20) for p in processes]
    assert [r.code for r in results] == [75, 75], results
    assert work.checkpoints() == [work.metrics().of("step")[-1]["step"]]


def test_different_files_on_two_ranks_are_a_mismatch(work):
    """Ranks that would train different models must not meet."""
    work.config({**CHANGES, "communicator.timeout": "5s"})
    work.config({**CHANGES, "communicator.timeout": "5s", "model.hidden_size": 48}, file="other.toml")
    port = free_port()
    processes = [work.start("train", file, env={"RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1",
                                                "MASTER_PORT": port})
                 for rank, file in enumerate(["run.toml", "other.toml"])]
    results = [p.wait(30) for p in processes]
    assert all(r.code in (4, 5) for r in results), "\n".join(map(str, results))
    assert not work.checkpoints()
