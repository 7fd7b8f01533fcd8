# SPDX-License-Identifier: MIT
"""Experts shared out over ranks: the numbers of a run without, whoever has tokens and wherever they go."""
import array

import pytest

import safetensors_file
from conftest import assert_fault, assert_no_run

# Sums over ranks come in another order: 1e-6 of a loss after 3 steps, 1e-5 after 30.
NEAR, LATER = 1e-6, 1e-5
STEPS = 30
CHANGES = {"run.steps": STEPS, "schedule.learning_rate": 3e-4, "checkpoint.every": "10 steps", "validation.every": "10 steps",
           "model.num_nextn_predict_layers": 1, "model.num_hidden_layers": 3, "batch_scheduler.fixed.micro_sequences": 1}


def assert_near(one, other, norm=1e-4):
    assert one.losses[:3] == pytest.approx(other.losses[:3], rel=NEAR)
    assert one.losses == pytest.approx(other.losses, rel=LATER)
    assert list(one.validations.values()) == pytest.approx(list(other.validations.values()), rel=LATER)
    assert column(one, "grad_norm") == pytest.approx(column(other, "grad_norm"), rel=norm)


def column(metrics, name):
    return [line[name] for line in metrics.of("step")]


@pytest.fixture(scope="module")
def alone(shared):
    """One rank with all experts."""
    shared.train("--set", "run.output=alone", changes=CHANGES)
    return shared


@pytest.mark.parametrize("ranks, expert, sets", [
    (2, 2, []),
    (4, 2, []),
    (4, 4, []),
    (2, 2, ["run.recompute=full"]),
    (2, 2, ["run.recompute=selective"]),
])
def test_losses_are_those_of_one_rank(alone, ranks, expert, sets):
    output = "-".join(["ep", str(ranks), str(expert), *sets])
    sets = [f"--set={s}" for s in [f"parallel.expert={expert}", f"run.output={output}", *sets]]
    alone.train("--ranks", str(ranks), *sets)
    assert_near(alone.metrics(output), alone.metrics("alone"))
    assert column(alone.metrics(output), "mtp_loss") == pytest.approx(column(alone.metrics("alone"), "mtp_loss"), rel=LATER)


def test_a_rank_without_rows_works_for_the_others(work):
    """3 validation rows on 4 ranks: one has none, and its experts are asked all the same."""
    work.config({**CHANGES, "run.steps": 10, "validation.sequences": 3})
    work.train("--set", "run.output=alone")
    work.train("--ranks", "4", "--set", "run.output=ep", "--set", "parallel.expert=4")
    assert_near(work.metrics("ep"), work.metrics("alone"))


def test_checkpoints_load_at_any_sharing(alone):
    """What two sharing ranks saved goes on with one, and the reverse."""
    for ranks, expert, other in ((2, 2, 1), (1, 1, 2)):
        first, second = f"save-{expert}", f"load-{other}"
        alone.train("--ranks", str(ranks), "--set", f"parallel.expert={expert}", "--set", f"run.output={first}",
                    "--set", "run.steps=10")
        alone.train("--ranks", str(other), "--set", f"parallel.expert={other}", "--set", f"run.output={second}",
                    "--set", "run.steps=20", "--resume", str(alone / first / "checkpoints/step-00000010"))
        losses = alone.metrics(second).losses
        assert losses == pytest.approx(alone.metrics("alone").losses[10:20], rel=LATER)


def test_all_tokens_to_one_expert(work):
    """Expert 0 gets every token of both ranks, all others none: no hang, and the run of one rank."""
    changes = {**CHANGES, "model.num_nextn_predict_layers": 0, "model.num_experts_per_tok": 1, "model.n_group": 1,
               "model.topk_group": 1, "checkpoint.every": "never", "schedule.expert_bias_rate": 0}
    work.train(changes={**changes, "run.steps": 1, "checkpoint.every": "1 steps"})
    work.run("checkpoint", "convert", "out", "folder", "--to", "safetensors")
    path = next((work / "folder").glob("*.safetensors"))
    tensors = safetensors_file.read(path)
    biases = [name for name in tensors if name.endswith("e_score_correction_bias")]
    assert biases
    for name in biases:
        shape, values = tensors[name]
        tensors[name] = (shape, array.array("f", [12.0] + [-12.0] * (len(values) - 1)))
    safetensors_file.write(path, tensors)
    work.config({**changes, "model.preset": None, "model.from": "folder",
                 **{key: None for key in changes if key.startswith("model.")}})
    work.train("--set", "run.output=alone")
    work.train("--ranks", "2", "--set", "parallel.expert=2", "--set", "run.output=ep")
    assert_near(work.metrics("ep"), work.metrics("alone"))


def test_what_does_not_fit_is_refused(work):
    work.config(CHANGES)
    for ranks, sets, said in ((2, ["parallel.expert=3"], "divisor of the 2 ranks"),
                              (3, ["parallel.expert=3"], "divisor of model.n_routed_experts (4)"),
                              (2, ["parallel.expert=2", "run.reproducible=any_world"], "parallel.expert = 1"),
                              (3, ["run.reproducible=any_world"], "1, 2, 4, 8")):
        result = work.run("train", "run.toml", "--ranks", str(ranks), *[f"--set={s}" for s in sets])
        assert_fault(result, 2, said)
        assert_no_run(work)
