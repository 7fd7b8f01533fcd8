# SPDX-License-Identifier: MIT
"""run.reproducible = "any_world": the same bits on 1, 2 and 4 ranks, under every sharding strategy."""
import hashlib

import pytest

import safetensors_file

CHANGES = {"run.steps": 12, "run.threads": 0, "run.reproducible": "any_world", "checkpoint.every": "6 steps",
           "batch_scheduler.fixed.sequences": 8, "batch_scheduler.fixed.micro_sequences": 1, "model.num_hidden_layers": 3,
           "model.num_nextn_predict_layers": 1, "schedule.balance_loss_weight": 1e-3}
COLUMNS = ("loss", "grad_norm", "grad_norm_clipped", "mtp_loss", "balance_loss")


def hashes(work, output):
    """{tensor: sha256} of what the run's last checkpoint exports, every bit of it."""
    result = work.run("checkpoint", "convert", output, f"{output}-folder", "--to", "safetensors", "--dtype", "fp32")
    assert result.code == 0, result
    found = {}
    for file in (work / f"{output}-folder").glob("*.safetensors"):
        for name, (dtype, shape, data) in safetensors_file.read_raw(file).items():
            found[name] = (dtype, shape, hashlib.sha256(data).hexdigest())
    assert len(found) > 20
    return found


def texts(metrics):
    """The columns as they stand in the file."""
    return {name: metrics.column(name) for name in COLUMNS} | {"validation": metrics.validations}


@pytest.fixture(scope="module")
def alone(shared):
    shared.train("--ranks", "1", "--set", "run.output=alone", changes=CHANGES)
    shared.hashes = hashes(shared, "alone")
    return shared


@pytest.mark.parametrize("sharding, ranks", [("ddp", 2), ("ddp", 4), ("zero1", 2), ("zero1", 4), ("zero2", 1), ("zero2", 4),
                                             ("zero3", 1), ("zero3", 2), ("zero3", 4)])
def test_the_same_bits(alone, sharding, ranks):
    output = f"{sharding}-{ranks}"
    alone.train("--ranks", str(ranks), "--set", f"run.output={output}", "--set", f"sharding.plugin={sharding}")
    assert texts(alone.metrics(output)) == texts(alone.metrics("alone"))
    assert hashes(alone, output) == alone.hashes


def test_by_default_ranks_show(work):
    """What is asked for above is not given anyway: otherwise the test above says nothing."""
    work.config({**CHANGES, "run.reproducible": "same_world", "run.threads": 1})
    for ranks in (1, 4):
        work.train("--ranks", str(ranks), "--set", f"run.output=ranks-{ranks}")
    assert work.metrics("ranks-1").column("grad_norm") != work.metrics("ranks-4").column("grad_norm")


def test_resume_at_another_world_size(alone):
    """Half the run on 4 ranks, the rest on 1: still the same bits."""
    alone.train("--ranks", "4", "--set", "run.output=moved", "--set", "sharding.plugin=zero2", "--set", "run.steps=6")
    alone.train("--ranks", "1", "--set", "run.output=moved", "--set", "sharding.plugin=ddp")
    assert texts(alone.metrics("moved"))["loss"] == texts(alone.metrics("alone"))["loss"]
    assert hashes(alone, "moved") == alone.hashes
