# SPDX-License-Identifier: MIT
"""Training from tokens, from .jsonl and from a blend of sources: 2 ranks, and a resumed run has the bytes of a straight one."""
import json

import pytest

from conftest import SOURCE, assert_fault, assert_no_run, small_text

TOKENIZER = SOURCE / "tests/data/tokenizer/tokenizer.json"
TOKENS = {"model.vocab_size": 384, "model.bos_token_id": 0, "model.eos_token_id": 1, "data.tokenizer": str(TOKENIZER),
          "run.ranks": 2, "run.steps": 8, "checkpoint.every": "4 steps", "validation.every": "4 steps"}


def lines(work, name, make, count=300):
    words = small_text(count * 12, seed=len(name)).split()
    (work / name).write_text("".join(json.dumps(make(" ".join(words[i * 12:i * 12 + 12]))) + "\n" for i in range(count)))


def from_bin(work):
    lines(work, "a.jsonl", lambda text: {"text": text})
    done = work.run("tokenize", "a.jsonl", "--tokenizer", TOKENIZER, "--output", "a", "--append-eos")
    assert done.code == 0, done
    return {"data.train": ["a.bin"]}


def from_answers(work):
    lines(work, "a.jsonl", lambda text: {"prompt": text[:30], "completion": text[30:]})
    return {"data.train": ["a.jsonl"]}


def from_conversations(work):
    lines(work, "a.jsonl", lambda text: {"messages": [{"role": "user", "content": text[:20]},
                                                      {"role": "assistant", "content": text[20:]}]})
    return {"data.train": ["a.jsonl", "text.txt"]}


def from_sources(work):
    from_bin(work)
    lines(work, "b.jsonl", lambda text: {"text": text}, 100)
    return {"data.train": None, "data.sources": [{"name": "tokens", "files": ["a.bin"], "weight": 0.6},
                                                 {"name": "lines", "files": ["b.jsonl"], "weight": 0.3},
                                                 {"name": "text", "files": ["text.txt"], "weight": 0.1, "repeat": 2}]}


def from_documents(work):
    return {**from_bin(work), "data.attention": "document", "model.num_nextn_predict_layers": 1}


DATA = [from_bin, from_answers, from_conversations, from_sources, from_documents]


@pytest.mark.parametrize("data", DATA, ids=lambda f: f.__name__[5:])
def test_a_resumed_run_has_the_bytes_of_a_straight_one(work, data):
    changes = {**TOKENS, **data(work)}
    work.train(changes=changes)
    straight = work.metrics()
    assert len(straight.losses) == 8 and all(loss > 0 for loss in straight.losses)
    assert len(straight.of("run")[0]["tokenizer"]["sha256"]) == 64
    work.train("--resume", str(work.checkpoint(4)), changes={**changes, "run.output": "other"})
    resumed = work.metrics("other")
    for name, column in resumed.columns().items():
        assert column == {step: text for step, text in straight.columns()[name].items() if step > 4}, name
    assert resumed.validations[8] == straight.validations[8]


def test_documents_do_not_see_each_other(work):
    """The first step sees the same tokens with the same weights: what differs is who sees whom, and which targets count."""
    changes = {**TOKENS, **from_documents(work), "run.steps": 1}
    work.train(changes=changes)
    work.train(changes={**changes, "data.attention": "row", "run.output": "rows"})
    documents, rows = (work.metrics(output).steps[1] for output in ("out", "rows"))
    assert documents["loss"] != rows["loss"] and documents["tokens"] < rows["tokens"]


def test_one_rank_and_two_train_on_the_same(work):
    changes = {**TOKENS, **from_sources(work), "run.steps": 3}
    work.train(changes=changes)
    two = work.metrics()
    work.train(changes={**changes, "run.ranks": 1, "run.output": "one"})
    for a, b in zip(two.losses, work.metrics("one").losses):
        assert abs(a / b - 1) < 1e-5
    assert [s["tokens"] for s in two.steps.values()] == [s["tokens"] for s in work.metrics("one").steps.values()]


def test_generate_and_export_use_the_models_tokenizer(work):
    work.train(changes={**TOKENS, **from_bin(work), "run.steps": 2})
    assert (work / "out/tokenizer.json").read_bytes() == TOKENIZER.read_bytes()
    assert work.run("checkpoint", "convert", "out", "exported", "--to", "safetensors").code == 0
    assert (work / "exported/tokenizer.json").read_bytes() == TOKENIZER.read_bytes()
    said = [work.run("generate", "--model", model, "--prompt", "light über", "--max-tokens", "5", "--temperature", "0")
            for model in ("out", "exported")]
    assert said[0].code == 0 and said[0].out.startswith("light über"), said[0]
    assert said[0].out == said[1].out
    assert work.run("evaluate", "run.toml", "--model", "exported").code == 0


def test_tokens_are_made_once(work):
    changes = {**TOKENS, **from_answers(work), "run.steps": 2}
    work.train(changes=changes)
    made = {p.name: p.stat().st_mtime_ns for p in (work / "out/tokens").iterdir()}
    assert len(made) == 1
    work.train("--resume", "none", changes=changes)
    assert {p.name: p.stat().st_mtime_ns for p in (work / "out/tokens").iterdir()} == made


def refuse(work, changes, *said):
    work.config({**TOKENS, **changes})
    assert_fault(work.run("train", "run.toml"), 2, *said)
    assert_no_run(work)


def test_what_does_not_fit_is_refused(work):
    refuse(work, {"model.vocab_size": 380}, "tokenizer", "380", "381")
    refuse(work, {"model.eos_token_id": 7}, "eos_token_id", "no special token")
    (work / "a.jsonl").write_text('{"text": "a"}\n{"text": ')
    refuse(work, {"data.train": ["a.jsonl"]}, "a.jsonl:2", "no JSON")
    (work / "a.bin").write_bytes(b"\1" * 100)
    refuse(work, {"data.train": ["a.bin"]}, "a.bin", ".idx")
    source = {"name": "a", "files": ["text.txt"]}
    refuse(work, {"data.train": None, "data.sources": [source, source]}, "sources[1].name", "another's")
    refuse(work, {"data.train": None, "data.sources": [source, {**source, "name": "b"}]}, "text.txt is in")
    refuse(work, {"data.train": None, "data.sources": [{**source, "weight": 0}]}, "weight", "above 0")
    refuse(work, {"data.sources": [source]}, "data.sources", "data.train")


def test_sources_that_are_used_up_end_the_run(work):
    changes = {**TOKENS, "data.train": None, "run.steps": 200, "run.ranks": 1, "validation.every": "never",
               "data.sources": [{"name": "a", "files": ["text.txt"], "repeat": 0.1}]}
    result = work.train(changes=changes, code=2)
    assert "used up" in result.err
