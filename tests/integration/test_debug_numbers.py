# SPDX-License-Identifier: MIT
"""`ciuic train --debug numbers` names the first tensor that is not finite, and `ciuic replay` computes its product again."""
import re

# fp16 and a first loss scale far beyond it: gradients overflow in the first step, and nothing before them.
OVERFLOWS = {"precision.plugin": "fp16", "precision.fp16.scaler": "static", "precision.fp16.initial_scale": 2.0**40, "run.steps": 2,
             "optimizer.max_skipped_steps": 1, "validation.every": "never", "checkpoint.every": "never"}
FOUND = re.compile(r"numbers: step 1, micro-batch 0, rank 0: module (\S+), pass (\S+): (.*) is the first tensor .* ciuic replay (\S+) ")


def test_the_first_bad_tensor_is_named_and_computed_again(work):
    result = work.train("--debug", "numbers", changes=OVERFLOWS, code=7)
    found = FOUND.search(result.err)
    assert found, result
    # The gradient of the logits itself is beyond fp16: the head sees it first.
    assert found[1] == "lm_head" and found[2] == "grad_weight" and "gradient of its output" in found[3]
    dumps = sorted((work / "out/numbers").iterdir())
    assert [d.name for d in dumps] == ["step-2-rank-0.safetensors"], "the last bad step's alone"
    replay = work.run("replay", dumps[0])
    assert replay.code == 0, replay
    assert replay.out.startswith("lm_head, grad_weight\n") and "not finite, first at [" in replay.out


def test_finite_runs_are_as_without(work):
    quiet = {"validation.every": "never", "checkpoint.every": "never", "precision.plugin": "bf16"}
    work.train("--set", "run.output=plain", changes=quiet)
    result = work.train("--debug", "numbers", changes=quiet)
    assert "numbers:" not in result.err and not (work / "out/numbers").exists()
    assert work.metrics().columns() == work.metrics("plain").columns()


def test_other_words_are_refused(work):
    result = work.train("--debug", "letters", changes={}, code=2)
    assert 'got "letters", expected numbers' in result.err
