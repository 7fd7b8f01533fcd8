# SPDX-License-Identifier: MIT
"""ciuic's tokenizer against the tokenizers package: 20 000 random strings of Unicode, every token, and back.

The tokenizer is trained here, with DeepSeek-V3's pre-tokenizer, and saved in both spellings of merges. Prints the rate of both
on one core, of the same run; nothing is asserted on time.
"""
import json
import os
import pathlib
import random
import struct
import subprocess
import tempfile
import time
import unicodedata
import unittest

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers  # noqa: E402

SOURCE = pathlib.Path(os.environ["CIUIC_SOURCE_DIR"])
TOOL = os.environ["CIUIC_TOKENIZE_STRINGS"]
MARKS = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""
WORDS = MARKS + r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SPECIAL = ["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>", "<｜User｜>", "<｜Assistant｜>"]
STRINGS = 20000


def isolated(pattern):
    return pre_tokenizers.Split(pattern=Regex(pattern), behavior="isolated")


def deepseek_steps():
    return [isolated(r"\p{N}{1,3}"), isolated("[一-龥぀-ゟ゠-ヿ]+"), isolated(WORDS)]


def byte_level(use_regex=False, add_prefix_space=False):
    return pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space, use_regex=use_regex)


def corpus():
    """Text of many scripts; the same on every machine."""
    rng = random.Random(5)
    words = [random_word(rng) for _ in range(3000)]
    return [" ".join(rng.choice(words) for _ in range(200)) + rng.choice(["", "\n", "\n\n", " \n"]) for _ in range(300)]


def random_word(rng):
    first, last = rng.choice([(97, 122)] * 6 + [(65, 90), (0x430, 0x44F), (0x4E00, 0x4E60), (0x3040, 0x309F), (48, 57),
                                                (33, 47), (0xE0, 0xFF), (0x1F600, 0x1F640), (0x627, 0x64A)])
    return "".join(chr(rng.randint(first, last)) for _ in range(rng.randint(1, 7)))


def is_known(character):
    """To Unicode 14, which CPython 3.11 and Debian 12's PCRE2 have: the package knows later characters."""
    return unicodedata.unidata_version != "14.0.0" or unicodedata.category(character) != "Cn"


def random_string(rng):
    """Words, spaces of all kinds, lines, special tokens and single characters of all of Unicode."""
    parts = []
    for _ in range(rng.choice([0, 1, 2, 5, 20, 60])):
        kind = rng.random()
        if kind < 0.5:
            parts.append(random_word(rng))
        elif kind < 0.75:
            parts.append(rng.choice([" ", "  ", "   ", "\n", "\r\n", "\t", "\u00a0", "\u2003", "\u180e", "\u3000", "\x0b", "\x85"])
                         * rng.randint(1, 3))
        elif kind < 0.8:
            parts.append(rng.choice(SPECIAL + ["<add>", " two words", "<", "<｜", "<｜User"]))
        elif kind < 0.9:
            parts.append(rng.choice(["'s", "'ll", "can't", "I'M", "1234567", "3.14", "e\u0301", "\u200d", "½", "Ⅷ", "٣", "\0"]))
        else:
            character = chr(rng.choice([rng.randrange(0x80), rng.randrange(0xD800), rng.randrange(0xE000, 0x3134F)]))
            parts.append(character if is_known(character) else "?")
    return "".join(parts)


class TokenizerParity(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)

    def trained(self, steps, vocabulary=2000, added=()):
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(vocab_size=vocabulary, special_tokens=SPECIAL, show_progress=False,
                                      initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
        tokenizer.train_from_iterator(corpus(), trainer)
        tokenizer.add_tokens([AddedToken("<add>", normalized=False), AddedToken(" two words", normalized=True), *added])
        return tokenizer

    def ours(self, tokenizer, strings):
        file = self.path / "tokenizer.json"
        if isinstance(tokenizer, Tokenizer):
            tokenizer.save(str(file))
        else:
            file.write_text(json.dumps(tokenizer, ensure_ascii=False))
        texts = [s.encode() for s in strings]
        (self.path / "in").write_bytes(b"".join(struct.pack("<i", len(t)) + t for t in texts))
        done = subprocess.run([TOOL, file, self.path / "in", self.path / "out"], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        data, at, tokens = (self.path / "out").read_bytes(), 0, []
        while at < len(data):
            count = struct.unpack_from("<i", data, at)[0]
            tokens.append(list(struct.unpack_from(f"<{count}i", data, at + 4)))
            at += 4 + 4 * count
        return tokens, float(done.stdout)

    def compare(self, tokenizer, strings):
        ours, _ = self.ours(tokenizer, strings)
        self.assertEqual(len(ours), len(strings))
        for string, tokens in zip(strings, ours):
            self.assertEqual(tokens, tokenizer.encode(string, add_special_tokens=False).ids, repr(string))

    def test_random_strings(self):
        rng = random.Random(1)
        self.compare(self.trained([*deepseek_steps(), byte_level()]), [random_string(rng) for _ in range(STRINGS)])

    def test_every_character(self):
        """Alone and between letters and digits, so that its class shows."""
        tokenizer = self.trained([*deepseek_steps(), byte_level()])
        strings = [f"a{chr(c)}b {chr(c)} 1{chr(c)}2" for c in range(0x3134F) if not 0xD800 <= c < 0xE000 and is_known(chr(c))]
        ours, _ = self.ours(tokenizer, strings)
        wrong = [s for s, tokens in zip(strings, ours) if tokens != tokenizer.encode(s, add_special_tokens=False).ids]
        self.assertEqual([hex(ord(s[1])) for s in wrong], [])

    def test_other_pre_tokenizers(self):
        rng = random.Random(2)
        strings = [random_string(rng) for _ in range(2000)]
        behaviors = ["isolated", "merged_with_previous", "merged_with_next", "contiguous"]
        for steps in ([byte_level(use_regex=True)],
                      [pre_tokenizers.Digits(individual_digits=True), byte_level(use_regex=True)],
                      [pre_tokenizers.Digits(individual_digits=False), byte_level()],
                      *[[pre_tokenizers.Split(Regex(r"[\s\p{P}]"), behavior=b), byte_level()] for b in behaviors],
                      *[[pre_tokenizers.Split(Regex(r"\p{L}+"), behavior=b, invert=True), byte_level()] for b in behaviors],
                      [pre_tokenizers.Split("a.", behavior="isolated"), byte_level(use_regex=True)]):
            self.compare(self.trained(steps, 600), strings)

    def test_added_tokens_that_strip_or_are_words(self):
        rng = random.Random(3)
        added = [AddedToken("ab", single_word=True), AddedToken("<r>", single_word=False)]
        strings = [random_string(rng) + rng.choice(["ab", " ab ", "éab", "ab_", "<r>"]) + random_string(rng) for _ in range(3000)]
        self.compare(self.trained([*deepseek_steps(), byte_level()], added=added), strings)

    def test_merges_in_the_old_spelling(self):
        rng = random.Random(4)
        tokenizer = self.trained([*deepseek_steps(), byte_level()])
        strings = [random_string(rng) for _ in range(500)]
        text = json.loads(tokenizer.to_str())
        text["model"]["merges"] = [" ".join(pair) for pair in text["model"]["merges"]]
        text["model"]["ignore_merges"] = True
        peer = Tokenizer.from_str(json.dumps(text))
        ours, _ = self.ours(text, strings)
        self.assertEqual(ours, [peer.encode(s, add_special_tokens=False).ids for s in strings])

    def test_rate_is_reported(self):
        tokenizer = self.trained([*deepseek_steps(), byte_level()], 8000)
        bible = SOURCE / "data" / "bible.txt"
        text = bible.read_text() if bible.exists() else "\n".join(corpus())
        strings = [text[i:i + 10000] for i in range(0, len(text), 10000)]
        begin = time.perf_counter()
        theirs = [tokenizer.encode(s, add_special_tokens=False).ids for s in strings]
        seconds = time.perf_counter() - begin
        ours, own_seconds = self.ours(tokenizer, strings)
        self.assertEqual(ours, theirs)
        size = sum(len(s.encode()) for s in strings) / 1e6
        print(f"one core, {size:.1f} MB: ciuic {size / own_seconds:.1f} MB/s, tokenizers {size / seconds:.1f} MB/s")


if __name__ == "__main__":
    unittest.main(argv=["tokenizer_parity.py", "-v"])
