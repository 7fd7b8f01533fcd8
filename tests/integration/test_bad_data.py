# SPDX-License-Identifier: MIT
"""Data that is missing, unreadable or too small: exit 2, before any rank starts."""
from conftest import assert_fault, assert_no_run


def refuse(work, content, *said, name="bad.txt", changes=None, remedy=None):
    if content is not None:
        (work / name).write_bytes(content)
    work.config({"data.train": [name], **(changes or {})})
    assert_fault(work.run("train", "run.toml"), 2, *said, remedy=remedy)
    assert_no_run(work)
    assert_fault(work.run("config", "check", "run.toml"), 2, *said, remedy=remedy)


def test_no_file(work):
    refuse(work, None, "data.train", "bad.txt")


def test_glob_without_a_match(work):
    refuse(work, None, "data.train", "none-*.txt", name="none-*.txt")


def test_empty_list(work):
    work.config({"data.train": []})
    assert_fault(work.run("train", "run.toml"), 2, "data.train")
    assert_no_run(work)


def test_folder_instead_of_a_file(work):
    (work / "texts").mkdir()
    refuse(work, None, "texts", name="texts")


def test_empty_file(work):
    refuse(work, b"", "bad.txt", "empty", remedy="leave it out")


def test_not_utf8_names_the_line(work):
    refuse(work, b"fine\nalso fine\nnot \xff fine\n" * 100, "bad.txt:3", "UTF-8", remedy="iconv")


def test_utf8_cut_in_the_middle(work):
    refuse(work, "ö".encode()[:1] * 1 + b"a" * 500, "bad.txt", "UTF-8")
    refuse(work, b"a" * 5000 + "ö".encode()[:1], "bad.txt", "UTF-8")


def test_shorter_than_one_sequence(work):
    refuse(work, b"short\n", "data.train", "6 tokens", "33", "sequence_tokens", remedy="more text")


def test_nothing_left_to_train_on(work):
    refuse(work, b"x" * 40, "data", changes={"data.validation_fraction": 0.9})


def test_missing_validation_file(work):
    work.config({"data.validation": ["held.txt"], "data.validation_fraction": None})
    assert_fault(work.run("train", "run.toml"), 2, "data.validation", "held.txt")
    assert_no_run(work)


def test_validation_file_shorter_than_one_sequence(work):
    (work / "held.txt").write_text("no\n")
    work.config({"data.validation": ["held.txt"], "data.validation_fraction": None})
    assert_fault(work.run("train", "run.toml"), 2, "data.validation", "shorter")
    assert_no_run(work)


def test_one_bad_file_among_good_ones_is_named(work):
    (work / "a.txt").write_text("fine " * 100)
    (work / "b.txt").write_bytes(b"\x80")
    work.config({"data.train": ["*.txt"]})
    assert_fault(work.run("train", "run.toml"), 2, "b.txt", "UTF-8")
    assert_no_run(work)
