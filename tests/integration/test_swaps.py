# SPDX-License-Identifier: MIT
"""Parts are swapped by --set alone, and plugins are files: they can be moved away, and one by one."""
import shutil

import pytest

from conftest import CIUIC, Workspace, assert_fault, assert_no_run

CHANGES = {"run.steps": 15, "checkpoint.every": "never"}


@pytest.fixture(scope="module")
def runs(shared):
    """Metrics by (communicator, precision), on one rank."""
    shared.config(CHANGES)
    made = {}
    for communicator, precision in (("gloo", "fp32"), ("local", "fp32"), ("gloo", "bf16")):
        output = f"{communicator}-{precision}"
        shared.train("--set", f"run.output={output}", "--set", f"communicator.plugin={communicator}",
                     "--set", f"precision.plugin={precision}")
        made[communicator, precision] = shared.metrics(output)
    return made


def test_gloo_and_local_give_the_same_bytes_on_one_rank(runs):
    assert runs["gloo", "fp32"].columns() == runs["local", "fp32"].columns()


def test_auto_says_what_it_chose_and_gives_the_bits_of_gloo(work):
    """Two ranks: a sum of two numbers has one order."""
    work.config({**CHANGES, "run.ranks": 2, "checkpoint.every": "10 steps", "checkpoint.keep": 0})
    result = work.train("--set", "communicator.plugin=auto", "--set", "run.output=auto")
    assert "communicator shm: all 2 ranks run on this machine" in result.out + result.err, result
    work.train("--set", "communicator.plugin=gloo", "--set", "run.output=gloo")
    assert work.metrics("auto").columns() == work.metrics("gloo").columns()
    # A run goes on with another communicator, and says nothing of it.
    shutil.rmtree(work.path / "auto/checkpoints/step-15", ignore_errors=True)
    work.train("--set", "communicator.plugin=gloo", "--set", "run.output=auto")
    assert work.metrics("auto").columns() == work.metrics("gloo").columns()


def test_bf16_is_close_to_fp32(runs):
    fp32, bf16 = runs["gloo", "fp32"], runs["gloo", "bf16"]
    assert fp32.losses != bf16.losses
    assert bf16.losses[0] == pytest.approx(fp32.losses[0], rel=1e-3)
    assert bf16.losses == pytest.approx(fp32.losses, rel=2e-2)
    assert bf16.losses[-1] < bf16.losses[0] - 0.5


def test_bf16_on_two_ranks_resumes_bit_for_bit(work):
    work.config({**CHANGES, "precision.plugin": "bf16", "run.ranks": 2, "checkpoint.every": "5 steps", "checkpoint.keep": 0})
    work.train()
    whole = work.metrics().columns()
    for step in (10, 15):
        shutil.rmtree(work.checkpoint(step))
    work.train()
    assert work.metrics().of("run")[1]["start_step"] == 5
    assert work.metrics().columns() == whole


def test_a_run_goes_on_with_another_precision_and_says_so(work):
    work.config({**CHANGES, "checkpoint.every": "5 steps", "run.steps": 5})
    work.train()
    result = work.train("--set", "precision.plugin=bf16", "--set", "run.steps=10")
    assert "precision" in result.err and "warn" in result.err, result
    assert work.metrics().losses[-1] < work.metrics().losses[0]


def test_tables_of_plugins_that_are_not_chosen_may_stay(work):
    work.config({**CHANGES, "run.steps": 2, "communicator.plugin": "local", "communicator.gloo.threads": 3,
                 "precision.unheard.of": 1})
    result = work.train()
    assert "[precision.unheard] has no effect: no precision plugin of that name is there" in result.err, result
    assert "gloo.threads" not in result.err, "it waits for another choice"


def test_an_override_for_a_plugin_that_is_not_chosen_is_told(work):
    work.config({**CHANGES, "run.steps": 2})
    for arguments in (["config", "check", "run.toml"], ["train", "run.toml"]):
        result = work.run(*arguments, "--set", "sharding.zero3.shard_rank=2")
        assert result.code == 0 and 'sharding.zero3.shard_rank has no effect: sharding.plugin is "ddp"' in result.err, result
    assert "no effect" not in work.run("config", "check", "run.toml", "--set", "communicator.gloo.threads=3").err, "auto may choose gloo"


def test_tables_of_what_auto_may_choose_are_checked(work):
    work.config({**CHANGES, "run.steps": 2})
    check = ["config", "check", "run.toml", "--set"]
    assert_fault(work.run(*check, "communicator.gloo.thread=3"), 2, "communicator.gloo.thread", "threads")
    assert_fault(work.run(*check, "communicator.gloo.threads=many"), 2, "communicator.gloo.threads")
    for name in ("nowhere", "auto"):
        result = work.run(*check, f"communicator.{name}.x=1")
        assert result.code == 0 and f"[communicator.{name}] has no effect" in result.err, result


def test_without_profilers(work, runs):
    work.config({**CHANGES, "communicator.plugin": "local", "profiler.plugins": []})
    work.train()
    assert work.metrics().columns() == runs["local", "fp32"].columns()


@pytest.fixture
def moved(tmp_path):
    """A copy of the binaries and plugins, to take plugins away from."""
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    (home / "plugins").mkdir()
    for name in ("ciuic", "ciuic-probe", "ciuic-worker"):
        shutil.copy2(CIUIC.parent / name, home / "bin" / name)
    for file in (CIUIC.parent.parent / "plugins").glob("*.so"):
        shutil.copy2(file, home / "plugins" / file.name)
    workspace = Workspace(tmp_path / "work", home / "bin/ciuic")
    workspace.home = home
    yield workspace
    left = workspace.close()
    shutil.rmtree(tmp_path, ignore_errors=True)
    assert not left


def test_plugins_are_found_beside_the_binary(moved):
    listing = moved.run("plugin", "list")
    assert listing.code == 0 and str(moved.home / "plugins/libgloo.so") in listing.out, listing
    assert str(CIUIC.parent.parent) not in listing.out, listing
    moved.train(changes={**CHANGES, "run.steps": 2})


def test_plugins_moved_away(moved):
    shutil.move(moved.home / "plugins", moved.home / "elsewhere")
    listing = moved.run("plugin", "list")
    assert listing.code == 0 and not listing.err, listing
    assert ".so" not in listing.out and str(moved.home / "plugins") in listing.out, listing
    for arguments in (["--help"], ["--version"], ["config", "reference"]):
        assert moved.run(*arguments).code == 0
    moved.config(CHANGES)
    assert_fault(moved.run("train", "run.toml"), 3, "none")
    assert_no_run(moved)
    # Named, they are found again.
    assert "elsewhere/libgloo.so" in moved.run("plugin", "list", "--path", str(moved.home / "elsewhere")).out
    moved.config({**CHANGES, "run.steps": 2, "plugins.path": [str(moved.home / "elsewhere")]})
    moved.train()


@pytest.mark.parametrize("kind, name, left", [
    ("optimizer", "adamw", "lion, muon, sgd"), ("precision", "fp32", "bf16, fp16, fp8_block"), ("communicator", "gloo", "local, shm"),
    ("sharding", "ddp", "zero1, zero2, zero3"), ("batch_scheduler", "fixed", "ramp"), ("checkpoint", "sharded", "safetensors"),
    ("profiler", "monitor", "none"),
])
def test_one_plugin_deleted(moved, kind, name, left):
    (moved.home / f"plugins/lib{name}.so").unlink()
    moved.config(CHANGES)
    result = moved.run("train", "run.toml")
    assert_fault(result, 3, kind, f'"{name}"', f"there are: {left}", f"looked in {moved.home / 'plugins'}")
    assert_no_run(moved)
    assert name not in [line.split()[1] for line in moved.run("plugin", "list").out.splitlines()]


def test_worker_deleted(moved):
    (moved.home / "bin/ciuic-worker").unlink()
    moved.config(CHANGES)
    assert_fault(moved.run("train", "run.toml"), 4, "ciuic-worker")
    assert moved.run("plugin", "list").code == 0
