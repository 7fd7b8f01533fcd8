# SPDX-License-Identifier: MIT
"""Writes tokenizer.json beside itself: 256 bytes, merges learned from a few lines, DeepSeek-V3's pre-tokenizer and special tokens.

Needs the standard library alone; the file is in the tree, so nobody has to run this.
"""
import collections
import json
import pathlib
import re

TEXT = ("In the beginning God created the heaven and the earth. And the earth was without form, and void; and darkness was upon "
        "the face of the deep. And the Spirit of God moved upon the face of the waters. And God said, Let there be light: and "
        "there was light. one two three 1234 2024\n\n漢字 かな カナ über naïve Привет мир\n") * 2
WORDS = (r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"""
         r"""|\s*[\r\n]+|\s+(?!\S)|\s+""")
SPECIAL = ["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>"]
LATE = [("<｜User｜>", False), ("<｜Assistant｜>", False)]
MERGES = 120


def alphabet():
    itself = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table, shifted = {}, 256
    for byte in range(256):
        table[byte] = chr(byte if byte in itself else shifted)
        shifted += byte not in itself
    return table


def learn(characters):
    """Pairs by number of occurrences, then by their text, so that the file is the same everywhere."""
    words = collections.Counter(re.findall(r" ?\w+|[^\w]", TEXT))
    split = {word: [characters[b] for b in word.encode()] for word in words}
    merges = []
    for _ in range(MERGES):
        pairs = collections.Counter()
        for word, count in words.items():
            for pair in zip(split[word], split[word][1:]):
                pairs[pair] += count
        best = min(pairs, key=lambda p: (-pairs[p], p))
        merges.append(best)
        for symbols in split.values():
            i = 0
            while i + 1 < len(symbols):
                if (symbols[i], symbols[i + 1]) == best:
                    symbols[i:i + 2] = ["".join(best)]
                i += 1
    return merges


def isolated(pattern):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def added(number, content, special):
    return {"id": number, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": not special, "special": special}


def main():
    characters = alphabet()
    vocabulary = {text: i for i, text in enumerate(SPECIAL)}
    merges = learn(characters)
    for text in [*characters.values(), *("".join(merge) for merge in merges)]:
        vocabulary.setdefault(text, len(vocabulary))
    tokens = [added(i, text, True) for i, text in enumerate(SPECIAL)]
    tokens += [added(len(vocabulary) + i, text, special) for i, (text, special) in enumerate(LATE)]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    steps = [isolated(r"\p{N}{1,3}"), isolated("[一-龥぀-ゟ゠-ヿ]+"), isolated(WORDS), byte_level]
    root = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": tokens,
        "normalizer": {"type": "Sequence", "normalizers": []},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps},
        "post_processor": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
                  "vocab": vocabulary, "merges": [" ".join(m) for m in merges]},
    }
    file = pathlib.Path(__file__).with_name("tokenizer.json")
    file.write_text(json.dumps(root, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


main()
