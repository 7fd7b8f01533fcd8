# SPDX-License-Identifier: MIT
"""Storage: full disks, checkpoints of another model, folders in use or not writable."""
import contextlib
import os
import shutil
import signal
import subprocess

import pytest

from conftest import Workspace, assert_fault, assert_no_partial_files, assert_no_run

MODEL_BYTES_OF_A_CHECKPOINT = 440_000  # 36384 parameters with two moments, fp32


@pytest.fixture
def small_disk(work):
    """Mounts a tmpfs of so many bytes as the run's folder's parent."""
    mounted = []

    def mount(size):
        if os.geteuid() != 0:
            pytest.skip("mounting a small disk takes root")
        folder = work / "disk"
        folder.mkdir()
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True, text=True)
        if made.returncode != 0:
            pytest.skip(f"no tmpfs can be mounted here: {made.stderr.strip()}")
        mounted.append(folder)
        return folder

    yield mount
    work.close()
    for folder in mounted:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize("ranks", [1, 2])
def test_disk_fills_up_at_the_second_checkpoint(work, small_disk, ranks):
    disk = small_disk(int(MODEL_BYTES_OF_A_CHECKPOINT * 1.6))
    work.config({"run.output": "disk/out", "run.ranks": ranks})
    result = work.run("train", "run.toml")
    assert_fault(result, 6, "step-00000010", "space")
    assert work.checkpoints("disk/out") == [5]
    assert_no_partial_files(disk)
    assert work.run("checkpoint", "verify", "disk/out").code == 0
    assert (disk / "out/checkpoints/latest").read_text().strip() == "step-00000005"
    metrics = work.metrics("disk/out")
    assert metrics.lines[-1]["type"] == "end" and metrics.lines[-1]["exit_code"] == 6
    # With room again, the same command goes on, bit for bit.
    subprocess.run(["mount", "-o", "remount,size=16M", disk], check=True)
    assert work.run("train", "run.toml").code == 0
    work.train("--set", "run.output=undisturbed")
    assert work.metrics("disk/out").columns() == work.metrics("undisturbed").columns()


def test_disk_without_room_for_the_first_checkpoint(work, small_disk):
    disk = small_disk(MODEL_BYTES_OF_A_CHECKPOINT // 2)
    work.config({"run.output": "disk/out", "run.ranks": 2})
    assert_fault(work.run("train", "run.toml"), 6, "step-00000005", "space")
    assert work.checkpoints("disk/out") == []
    assert_no_partial_files(disk)


def test_disk_with_no_room_at_all(work, small_disk):
    disk = small_disk(64 * 1024)
    with open(disk / "rest", "wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"x" * 4096):
            pass
    work.config({"run.output": "disk/out"})
    assert_fault(work.run("train", "run.toml"), 6, "disk/out")
    assert_no_partial_files(disk)


def test_disk_too_full_for_an_export(work, small_disk):
    work.train(changes={"run.steps": 5})
    disk = small_disk(64 * 1024)
    result = work.run("checkpoint", "convert", "out", "disk/hf", "--to", "safetensors")
    assert_fault(result, 6, "disk/hf")
    assert_no_partial_files(disk)
    assert not (disk / "hf/model.safetensors").exists()


@pytest.mark.parametrize("changes, said", [
    ({"model.hidden_size": 48}, ["hidden_size", "32", "48"]),
    ({"model.num_hidden_layers": 3}, ["num_hidden_layers", "2", "3"]),
    ({"model.rope_theta": 5000.0}, ["rope_theta", "10000", "5000"]),
])
@pytest.mark.parametrize("ranks", [1, 2])
def test_checkpoint_of_another_model(work, changes, said, ranks):
    work.train(changes={"run.steps": 5, "run.ranks": ranks})
    lines = len(work.metrics().of("step"))
    work.config({"run.steps": 10, "run.ranks": ranks, **changes})
    result = work.run("train", "run.toml")
    assert_fault(result, 6, "another model", *said, "step-00000005", remedy="--resume none")
    assert work.checkpoints() == [5] and len(work.metrics().of("step")) == lines
    assert work.run("checkpoint", "verify", "out").code == 0


def test_resume_path_that_is_no_checkpoint(work):
    (work / "junk").mkdir()
    (work / "junk/file").write_text("x")
    work.config()
    assert_fault(work.run("train", "run.toml", "--resume", "junk"), 6, "junk")


def test_folder_in_use_names_the_process(work):
    work.config({"run.steps": 100000, "checkpoint.every": "never", "run.ranks": 2})
    process = work.start("train", "run.toml")
    work.wait_for_step(3, process)
    for arguments in ([], ["--resume", "none"], ["--ranks", "1"]):
        second = work.start("train", "run.toml", *arguments).wait()
        assert_fault(second, 2, "in use", str(process.pid), "out", remedy="run.output")
    assert process.is_running() and not (work / "out.1").exists()
    process.signal(signal.SIGTERM)
    assert process.wait(20).code == 75
    assert len(work.metrics().of("run")) == 1, "the refused ones wrote nothing"


def test_lock_file_of_a_dead_run_does_not_matter(work):
    work.config()
    (work / "out").mkdir()
    (work / "out/lock").write_text("1\n")
    work.train("--set", "run.steps=2")


def test_output_below_a_file(work):
    (work / "plain").write_text("")
    work.config({"run.output": "plain/out"})
    assert_fault(work.run("train", "run.toml"), 6, "plain/out")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_output_that_may_not_be_written(work):
    (work / "closed").mkdir(mode=0o555)
    work.config({"run.output": "closed/out"})
    assert_fault(work.run("train", "run.toml"), 6, "closed/out", "denied")
    assert_no_run(work, "closed/out")


def test_run_folder_can_be_moved(tmp_path):
    """No absolute path is kept: a run's folder goes on elsewhere."""
    first = Workspace(tmp_path / "a")
    first.train(changes={"run.steps": 10})
    whole = first.metrics().columns()
    shutil.rmtree(first.checkpoint(10))
    second = Workspace(tmp_path / "b")
    shutil.move(first / "out", second / "out")
    second.train(changes={"run.steps": 10})
    assert second.metrics().of("run")[1]["start_step"] == 5
    assert second.metrics().columns() == whole
