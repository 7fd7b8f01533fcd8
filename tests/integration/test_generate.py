# SPDX-License-Identifier: MIT
"""generate: what is printed where, what ends it, and a person at a terminal."""
import array
import math
import os
import re
import select
import subprocess
import time

import pytest

import safetensors_file
from conftest import assert_fault, clean_environment

VOCABULARY = 259


@pytest.fixture(scope="module")
def model(shared):
    """A trained run ("out") and its export ("hf")."""
    shared.train(changes={"run.steps": 30})
    assert shared.run("checkpoint", "convert", "out", "hf", "--to", "safetensors").code == 0
    return shared


def generate(model, *arguments):
    result = model.run("generate", "--model", "out", "--quiet", *arguments)
    assert result.code == 0 and not result.err, result
    return result.out


def test_generate_continues_the_prompt(model):
    text = generate(model, "--prompt", "the waters", "--max-tokens", "12", "--temperature", "0")
    assert text.startswith("the waters") and text.endswith("\n")
    assert len(text.encode()) <= len("the waters") + 12 + 1


def test_generate_at_temperature_0_is_the_most_likely(model):
    arguments = ["--prompt", "and darkness", "--max-tokens", "6", "--temperature", "0"]
    text = generate(model, *arguments)
    assert generate(model, *arguments) == text
    assert generate(model, *arguments, "--seed", "99") == text
    sequence = array.array("q", list(text.encode()[:-1]))
    safetensors_file.write(model / "said.safetensors", {"tokens": ((1, len(sequence)), sequence)})
    assert model.run("evaluate", "--model", "out", "--tokens", "said.safetensors", "--logits",
                     "said-logits.safetensors").code == 0
    _, logits = safetensors_file.read(model / "said-logits.safetensors")["logits"]
    for position in range(len("and darkness") - 1, len(sequence) - 1):
        scores = logits[position * VOCABULARY:(position + 1) * VOCABULARY]
        best = max(range(258), key=lambda t: scores[t] if t < 256 or t == 257 else -math.inf)
        assert sequence[position + 1] == best, position


def test_generate_with_a_seed_repeats_itself(model):
    arguments = ["--prompt", "light", "--max-tokens", "30", "--temperature", "1.0"]
    texts = {generate(model, *arguments, "--seed", str(seed)) for seed in (1, 1, 2)}
    assert len(texts) == 2


def test_generate_of_nothing(model):
    assert generate(model, "--prompt", "day", "--max-tokens", "0") == "day\n"
    assert generate(model, "--prompt", "", "--max-tokens", "3").endswith("\n")
    assert generate(model, "--prompt", "über", "--max-tokens", "0") == "über\n"


def test_generate_from_an_export(model):
    arguments = ["--prompt", "the", "--max-tokens", "8", "--temperature", "0"]
    result = model.run("generate", "--model", "hf", "--quiet", *arguments)
    assert result.code == 0 and result.out == generate(model, *arguments)


@pytest.mark.parametrize("options", [["--top-k", "1"], ["--top-p", "1e-9"]])
def test_one_candidate_is_the_most_likely(model, options):
    arguments = ["--prompt", "the day", "--max-tokens", "10"]
    assert generate(model, *arguments, *options, "--temperature", "2") == generate(model, *arguments, "--temperature", "0")


def test_top_k_and_top_p_change_what_is_said(model):
    arguments = ["--prompt", "the day", "--max-tokens", "40", "--temperature", "3"]
    assert len({generate(model, *arguments, *o) for o in ([], ["--top-k", "3"], ["--top-p", "0.5"])}) == 3


def test_stop_texts_are_not_shown(model):
    arguments = ["--prompt", "light", "--max-tokens", "60", "--temperature", "0"]
    whole = generate(model, *arguments)[len("light"):-1]
    stop = whole[10:13]
    stopped = generate(model, *arguments, "--stop", "\u2603", "--stop", stop)
    assert stopped == "light" + whole[:whole.index(stop)] + "\n"


def test_summary_on_stderr(model):
    result = model.run("generate", "--model", "out", "--prompt", "day", "--max-tokens", "5", "--temperature", "0")
    assert result.code == 0 and result.err.count("\n") == 1, result
    assert re.search(r"prompt 3 tokens, \d+ tokens/s; generated 5, [\d.]+ tokens/s; cache [\d.]+ MiB, 8 of 1024 tokens",
                     result.err), result


def piped(model, text, *arguments):
    return subprocess.run([model.ciuic, "generate", "--model", "out", "--quiet", *arguments], cwd=model.path, input=text,
                          capture_output=True, env=clean_environment(), timeout=60)


def test_prompt_from_stdin_and_from_a_file(model):
    arguments = ["--max-tokens", "9", "--temperature", "0"]
    expected = generate(model, "--prompt", "über day", *arguments).encode()
    assert piped(model, "über day".encode(), "--prompt", "-", *arguments).stdout == expected
    (model / "prompt.txt").write_text("über day", encoding="utf-8")
    assert generate(model, "--prompt-file", "prompt.txt", *arguments).encode() == expected


def test_output_is_always_utf8(model):
    """However hot it is sampled."""
    done = piped(model, b"x", "--prompt", "-", "--max-tokens", "300", "--temperature", "50")
    assert done.returncode == 0
    assert len(done.stdout.decode("utf-8")) > 50


def test_long_prompt_goes_through_in_pieces(model):
    """The same continuation as from the run's logits over all of it."""
    text = (model / "text.txt").read_bytes()[:700].decode("utf-8", "ignore")
    said = generate(model, "--prompt", text, "--max-tokens", "1", "--temperature", "0").encode()
    sequence = array.array("q", list(text.encode()))
    safetensors_file.write(model / "long.safetensors", {"tokens": ((1, len(sequence)), sequence)})
    assert model.run("evaluate", "--model", "out", "--tokens", "long.safetensors", "--logits",
                     "long-logits.safetensors").code == 0
    _, logits = safetensors_file.read(model / "long-logits.safetensors")["logits"]
    scores = logits[-VOCABULARY:]
    best = max(range(258), key=lambda t: scores[t] if t < 256 or t == 257 else -math.inf)
    assert said[len(text.encode()):] == bytes([best]) + b"\n"


def test_context_ends_at_the_models_positions(model):
    text = "a" * 1020
    said = model.run("generate", "--model", "out", "--prompt", text, "--temperature", "0")
    assert said.code == 0 and "context is full, 1024 tokens (max_position_embeddings)" in said.err, said
    assert len(said.out.encode()) == 1020 + 5 + 1
    assert len(generate(model, "--prompt", text, "--temperature", "0", "--max-tokens", "5").encode()) == 1026
    assert_fault(model.run("generate", "--model", "out", "--prompt", text, "--max-tokens", "6"), 2, "--max-tokens",
                 "1024", "max_position_embeddings", "at most 5")
    assert_fault(model.run("generate", "--model", "out", "--prompt", "a" * 1025), 2, "1025", "1024")


@pytest.mark.parametrize("arguments, code, said", [
    (["--prompt", "x", "--temperature", "-1"], 2, ["--temperature", "-1"]),
    (["--prompt", "x", "--temperature", "nan"], 2, ["--temperature"]),
    (["--prompt", "x", "--max-tokens", "-1"], 2, ["--max-tokens"]),
    (["--prompt", "x", "--top-k", "-1"], 2, ["--top-k"]),
    (["--prompt", "x", "--top-p", "0"], 2, ["--top-p"]),
    (["--prompt", "x", "--top-p", "1.1"], 2, ["--top-p"]),
    (["--prompt", "x", "--stop", ""], 2, ["--stop"]),
    (["--prompt", "x", "--prompt-file", "text.txt"], 2, ["--prompt-file"]),
    (["--prompt-file", "nowhere.txt"], 6, ["nowhere.txt"]),
    ([], 2, ["--prompt -"]),
])
def test_requests_that_cannot_be(model, arguments, code, said):
    result = model.run("generate", "--model", "out", *arguments)
    assert_fault(result, code, *said)
    assert result.out == ""


def test_prompt_that_is_not_utf8(model):
    done = piped(model, b"a\xff", "--prompt", "-")
    assert done.returncode == 2 and b"UTF-8 at byte 1" in done.stderr


class Terminal:
    """A person at a terminal, who waits for what is said."""

    def __init__(self, model, *arguments):
        self.master, terminal = os.openpty()
        self.process = subprocess.Popen(
            [model.ciuic, "generate", "--model", "out", *arguments], cwd=model.path, stdin=terminal, stdout=terminal,
            stderr=terminal, env=clean_environment({"TERM": "xterm"}), start_new_session=True,
            preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0))
        os.close(terminal)
        self.said = ""

    def type(self, text):
        os.write(self.master, text.encode())

    def expect(self, pattern, seconds=60):
        """Waits for the pattern; returns what came up to its end."""
        end = time.monotonic() + seconds
        while not (found := re.search(pattern, self.said)):
            assert time.monotonic() < end, f"not {pattern!r} in {self.said!r}"
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    self.said += os.read(self.master, 65536).decode("utf-8", "replace")
                except OSError:
                    pytest.fail(f"ended without {pattern!r}: {self.said!r}")
        before, self.said = self.said[:found.end()], self.said[found.end():]
        return before

    def end(self):
        code = self.process.wait(30)
        os.close(self.master)
        return code

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
            os.close(self.master)


@pytest.fixture
def terminal(model):
    opened = []

    def open_one(*arguments):
        opened.append(Terminal(model, *arguments))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


PROMPT = r"(?<![^\n])> $"


def test_conversation(model, terminal):
    person = terminal("--max-tokens", "8", "--temperature", "0")
    assert "/reset" in person.expect(PROMPT)
    person.type("the day\n")
    person.expect(r"prompt 7 tokens.*15 of 1024 tokens.*\r\n> $")
    person.type("and\n")
    person.expect(r"prompt 5 tokens.*27 of 1024 tokens.*\r\n> $")  # the token before, a line's end, 3 letters
    person.type("/reset\n")
    person.expect(r"the context is empty\r\n> $")
    person.type("the day\n")
    person.expect(r"15 of 1024 tokens.*\r\n> $")
    person.type("/what\n")
    person.expect(r"there is no /what.*\r\n.*/quit.*\r\n> $")
    person.type("/quit\n")
    assert person.end() == 0


def test_context_is_kept_between_lines(model, terminal):
    first = generate(model, "--prompt", "the day", "--max-tokens", "8", "--temperature", "0")
    both = generate(model, "--prompt", first + "and", "--max-tokens", "8", "--temperature", "0")
    person = terminal("--max-tokens", "8", "--temperature", "0", "--quiet")
    person.expect(PROMPT)
    person.type("the day\n")
    said = person.expect(r"the day\r\n[^>]*> $")
    assert "the day" + said[len("the day\r\n"):-len("\r\n> ")] == first[:-1]
    person.type("and\n")
    said = person.expect(r"and\r\n[^>]*> $")
    assert first + "and" + said[len("and\r\n"):-len("\r\n> ")] == both[:-1]
    person.type("\x04")
    assert person.end() == 0


def test_interrupt_stops_the_text_and_not_the_program(model, terminal):
    person = terminal("--max-tokens", "1000000", "--temperature", "2")
    person.expect(PROMPT)
    person.type("light")
    person.expect("light")
    person.type("\x03")  # drops the line
    person.expect(r"\n> $")
    person.type("the day\n")
    person.expect(r"the day\r\n.")
    person.type("\x03")
    person.expect(r"(interrupted|context is full|end of text)[^>]*> $")
    person.type("/reset\n")
    person.expect(r"empty\r\n> $")
    person.type("\x04")
    assert person.end() == 0


def test_a_full_context_says_so(model, terminal):
    person = terminal("--max-tokens", "2000", "--temperature", "0")
    person.expect(PROMPT)
    person.type("the day\n")
    person.expect(r"context is full, 1024 tokens.*/reset begins a new one\r\n> $", 60)
    person.type("more\n")
    person.expect(r"/reset begins a new one\r\n> $")
    person.type("\x04")
    assert person.end() == 0


@pytest.mark.parametrize("file, said", [("/dev/zero", "/dev/zero is a device"), (".", ". is a folder"), ("none", "No such file")])
def test_a_prompt_file_that_is_no_file_is_refused_at_once(model, file, said):
    assert_fault(model.run("generate", "--model", "out", "--prompt-file", file), 6, "--prompt-file", said)
