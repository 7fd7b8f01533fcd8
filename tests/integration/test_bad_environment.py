# SPDX-License-Identifier: MIT
"""Launcher variables, ports and devices that are wrong: exit 4 (2 where the command line is), by name."""
import os
import socket

import pytest

from conftest import assert_fault, assert_no_run, free_port

FOUR = {"RANK": 0, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 29511}


def without(name):
    return {k: v for k, v in FOUR.items() if k != name}


def assert_nothing_written(work):
    """A rendezvous may make the folder; a run that never began leaves nothing in it."""
    files = [p for p in (work / "out").rglob("*") if p.is_file() and p.name != "lock"] if (work / "out").exists() else []
    assert not [p for p in files if "checkpoints" in p.parts or p.name == "metrics.jsonl"], files


@pytest.mark.parametrize("name", list(FOUR))
def test_each_missing_variable_is_named(work, name):
    work.config()
    result = work.run("train", "run.toml", env=without(name))
    assert_fault(result, 4, f"{name} is not set", remedy="unset")
    assert_no_run(work)


@pytest.mark.parametrize("name, value", [
    ("RANK", "2"), ("RANK", "-1"), ("RANK", "first"), ("WORLD_SIZE", "0"), ("WORLD_SIZE", "2x"),
    ("MASTER_PORT", "0"), ("MASTER_PORT", "70000"), ("MASTER_PORT", "http"),
])
def test_variable_out_of_range_names_variable_and_value(work, name, value):
    work.config()
    assert_fault(work.run("train", "run.toml", env={**FOUR, name: value}), 4, name, f'"{value}"')
    assert_no_run(work)


def test_ranks_other_than_world_size(work):
    work.config()
    assert_fault(work.run("train", "run.toml", "--ranks", "3", env=FOUR), 2, "--ranks 3", "WORLD_SIZE is 2")
    assert_no_run(work)


def test_ranks_below_one(work):
    work.config()
    assert_fault(work.run("train", "run.toml", "--ranks", "0"), 2, "ranks", "0")
    assert_fault(work.run("train", "run.toml", "--ranks", "two"), 2, "ranks", "two")
    assert_no_run(work)


def has_cuda():
    return os.path.exists("/dev/nvidiactl")


@pytest.mark.skipif(has_cuda(), reason="this machine has a CUDA device")
def test_cuda_where_there_is_none(work):
    work.config({"run.device": "cuda"})
    assert_fault(work.run("train", "run.toml"), 4, "run.device", "cuda", remedy="cpu")
    assert_no_run(work)
    assert_fault(work.run("config", "check", "run.toml"), 4, "run.device", "cuda")


@pytest.fixture
def taken_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        yield s.getsockname()[1]


@pytest.mark.parametrize("world", [1, 2])
def test_master_port_in_use(work, taken_port, world):
    work.config()
    result = work.run("train", "run.toml", env={**FOUR, "WORLD_SIZE": world, "MASTER_PORT": taken_port})
    assert_fault(result, 4, str(taken_port), "in use")
    assert_nothing_written(work)


def test_configured_port_in_use(work, taken_port):
    work.config({"run.ranks": 2, "run.rendezvous": f"tcp://127.0.0.1:{taken_port}"})
    result = work.run("train", "run.toml")
    assert_fault(result, 4, str(taken_port), "in use")
    assert_nothing_written(work)


def test_missing_rank_is_named_at_the_deadline(work):
    work.config({"communicator.timeout": "1s"})
    result = work.run("train", "run.toml", env={**FOUR, "MASTER_PORT": free_port()})
    assert_fault(result, 4, "rank 1 of 2 did not join within 1 s")
    assert_nothing_written(work)


def test_nobody_at_the_master_address(work):
    port = free_port()
    work.config({"communicator.timeout": "1s"})
    result = work.run("train", "run.toml", env={**FOUR, "RANK": 1, "MASTER_PORT": port})
    assert_fault(result, 4, f"127.0.0.1:{port}")


def test_unknown_master_host(work):
    work.config({"communicator.timeout": "1s"})
    result = work.run("train", "run.toml", env={**FOUR, "RANK": 1, "MASTER_ADDR": "no-such-host.invalid"})
    assert_fault(result, 4, "no-such-host.invalid")
