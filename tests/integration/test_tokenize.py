# SPDX-License-Identifier: MIT
"""ciuic tokenize: what it writes, what it refuses, what it leaves behind."""
import json
import struct

from conftest import SOURCE, assert_fault

TOKENIZER = SOURCE / "tests/data/tokenizer/tokenizer.json"


def index_of(path):
    """(dtype code, lengths, pointers, documents) of a Megatron index."""
    data = path.read_bytes()
    assert data[:9] == b"MMIDIDX\0\0"
    version, code, sequences, entries = struct.unpack_from("<QBQQ", data, 9)
    assert version == 1 and len(data) == 34 + 12 * sequences + 8 * entries
    at = 34 + 4 * sequences
    return (code, struct.unpack_from(f"<{sequences}i", data, 34), struct.unpack_from(f"<{sequences}q", data, at),
            struct.unpack_from(f"<{entries}q", data, at + 8 * sequences))


def test_each_line_is_a_document_that_ends_in_eos(work):
    (work / "a.jsonl").write_text("".join(json.dumps({"text": "And the earth" * n}) + "\n" for n in (1, 2, 0, 3)))
    result = work.run("tokenize", "a.jsonl", "text.txt", "--tokenizer", TOKENIZER, "--output", "o", "--append-eos")
    assert result.code == 0 and "4 documents" in result.out and result.err == "", result
    code, lengths, pointers, documents = index_of(work / "o.idx")
    tokens = struct.unpack(f"<{sum(lengths)}H", (work / "o.bin").read_bytes())
    assert code == 8 and documents == (0, 1, 2, 3, 4) and len(lengths) == 4
    for length, pointer in zip(lengths, pointers):
        assert tokens[pointer // 2 + length - 1] == 1
    assert tokens.count(1) == 4
    assert not list(work.path.glob("*partial*"))


def test_the_same_bytes_with_any_number_of_threads(work):
    (work / "text.txt").write_text((work / "text.txt").read_text() * 60)
    for threads in (1, 3):
        assert work.run("tokenize", "text.txt", "--tokenizer", TOKENIZER.parent, "--output", f"o{threads}",
                        "--threads", str(threads)).code == 0
    assert (work / "o1.bin").read_bytes() == (work / "o3.bin").read_bytes()
    assert (work / "o1.idx").read_bytes() == (work / "o3.idx").read_bytes()


def refuse(work, *said, arguments=("text.txt",), options=(), code=2):
    result = work.run("tokenize", *arguments, "--tokenizer", TOKENIZER, "--output", "o", *options)
    assert_fault(result, code, *said)
    assert not list(work.path.glob("o.*"))


def test_what_cannot_be_tokenized_is_refused(work):
    (work / "bad.jsonl").write_text('{"text": "a"}\n{"text": 1}\n')
    refuse(work, "bad.jsonl:2", "text", arguments=["bad.jsonl"])
    (work / "answers.jsonl").write_text('{"prompt": "a", "completion": "b"}\n')
    refuse(work, "answers.jsonl:1", "answer", arguments=["answers.jsonl"])
    (work / "bad.txt").write_bytes(b"a\n\xff")
    refuse(work, "bad.txt:2", "UTF-8", arguments=["text.txt", "bad.txt"])
    refuse(work, "none.txt", arguments=["none.txt"])
    refuse(work, "--eos", "<none>", options=["--append-eos", "--eos", "<none>"])
    refuse(work, "--eos", options=["--eos", "x"])
    refuse(work, "--threads", options=["--threads", "-1"])
    refuse(work, "no file", arguments=[])
    assert_fault(work.run("tokenize", "text.txt", "--output", "o"), 2, "--tokenizer")
    (work / "t.json").write_text("{}")
    assert_fault(work.run("tokenize", "text.txt", "--tokenizer", "t.json", "--output", "o"), 2, "pre_tokenizer")


def test_a_folder_that_is_not_there_is_a_storage_fault(work):
    assert_fault(work.run("tokenize", "text.txt", "--tokenizer", TOKENIZER, "--output", "no/o"), 6, "cannot write tokens")
