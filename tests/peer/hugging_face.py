# SPDX-License-Identifier: MIT
"""Folders that ciuic writes, read by transformers and safetensors; and safetensors files that both judge.

Runs in the pinned environment that `tools/setup --peers` makes. Tolerances (docs/numerics.md):
  logits            1e-5 x max(1, largest logit), ciuic and transformers on the same exported folder
  FP8               every code, scale and dequantised value equal to PyTorch's
  strictness        accepted or refused by both, but for what docs/hugging_face.md lists
"""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

import torch
import transformers
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file

SOURCE = pathlib.Path(os.environ["CIUIC_SOURCE_DIR"])
CIUIC = pathlib.Path(os.environ["CIUIC"])


def run(*arguments):
    return subprocess.run([CIUIC, *map(str, arguments)], capture_output=True, text=True, timeout=300)


def ciuic(*arguments):
    done = run(*arguments)
    if done.returncode != 0:
        raise AssertionError(f"ciuic {arguments[0]} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def export(source, target, *arguments):
    ciuic("checkpoint", "convert", source, target, "--to", "safetensors", *arguments)
    return target


def all_tensors(folder):
    tensors = {}
    for file in sorted(folder.glob("*.safetensors")):
        tensors.update(load_file(file))
    return tensors


class Folders(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.holder.cleanup)
        cls.path = pathlib.Path(cls.holder.name)
        torch.manual_seed(0)
        config = transformers.DeepseekV3Config.from_json_file(SOURCE / "configs/presets/small.json")
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=torch.float32)
        for name, buffer in model.named_buffers():
            if name.endswith("e_score_correction_bias"):
                buffer.copy_(torch.randn_like(buffer) * 0.1)
        model.save_pretrained(cls.path / "hf")
        cls.tokens = torch.randint(0, 256, (2, 48), generator=torch.Generator().manual_seed(1))
        save_file({"tokens": cls.tokens}, cls.path / "tokens.safetensors")

    def compare_logits(self, folder):
        ciuic("evaluate", "--model", folder, "--tokens", self.path / "tokens.safetensors", "--logits",
              self.path / "logits.safetensors")
        ours = load_file(self.path / "logits.safetensors")["logits"]
        model, said = transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
        self.assertFalse(said["missing_keys"] or said["unexpected_keys"] or said["mismatched_keys"], said)
        with torch.no_grad():
            theirs = model(input_ids=self.tokens, use_cache=False).logits
        largest = max(1.0, theirs.abs().max().item())
        self.assertLess((ours - theirs).abs().max().item(), 1e-5 * largest)

    def test_fp32_export_in_one_file(self):
        folder = export(self.path / "hf", self.path / "fp32", "--dtype", "fp32")
        self.compare_logits(folder)
        before, after = all_tensors(self.path / "hf"), all_tensors(folder)
        self.assertEqual(set(before), set(after))
        self.assertTrue(all(torch.equal(before[n], after[n]) for n in before))

    def test_bf16_export_in_several_files(self):
        folder = export(self.path / "hf", self.path / "bf16", "--dtype", "bf16", "--max-file-size", "4MiB")
        self.assertGreater(len(list(folder.glob("model-0*-of-*.safetensors"))), 1)
        self.compare_logits(folder)
        before, after = all_tensors(self.path / "hf"), all_tensors(folder)
        for name, value in before.items():
            expected = value if name.endswith("e_score_correction_bias") else value.to(torch.bfloat16)
            self.assertTrue(torch.equal(after[name], expected), name)

    def test_as_stored_through_the_native_format(self):
        ciuic("checkpoint", "convert", self.path / "hf", self.path / "native", "--to", "sharded")
        self.compare_logits(export(self.path / "native", self.path / "back"))

    def test_a_folder_that_transformers_split_is_read(self):
        model = transformers.AutoModelForCausalLM.from_pretrained(self.path / "hf", dtype=torch.bfloat16)
        model.save_pretrained(self.path / "split", max_shard_size="3MB")
        self.assertTrue((self.path / "split/model.safetensors.index.json").exists())
        self.compare_logits(self.path / "split")

    def test_fp8_codes_and_scales_are_those_of_pytorch(self):
        folder = export(self.path / "hf", self.path / "fp8", "--dtype", "fp8")
        wide = all_tensors(export(folder, self.path / "fp8-wide", "--dtype", "fp32"))
        before, after = all_tensors(self.path / "hf"), all_tensors(folder)
        names = [n for n in before if after[n].dtype == torch.float8_e4m3fn]
        self.assertEqual(set(after), set(before) | {f"{n}_scale_inv" for n in names})
        self.assertGreater(len(names), 10)
        for name in names:
            value = before[name]
            rows, columns = value.shape
            padded = torch.zeros((rows + 127) // 128 * 128, (columns + 127) // 128 * 128)
            padded[:rows, :columns] = value
            blocks = padded.view(padded.shape[0] // 128, 128, padded.shape[1] // 128, 128)
            amax = blocks.abs().amax(dim=(1, 3))
            scale = torch.where(amax == 0, torch.ones_like(amax), amax / 448)
            self.assertTrue(torch.equal(after[f"{name}_scale_inv"], scale), name)
            spread = scale.repeat_interleave(128, 0)[:rows].repeat_interleave(128, 1)[:, :columns]
            codes = (value / spread).to(torch.float8_e4m3fn)
            self.assertTrue(torch.equal(after[name].view(torch.uint8), codes.view(torch.uint8)), name)
            self.assertTrue(torch.equal(wide[name], codes.float() * spread), name)
        config = json.loads((folder / "config.json").read_text())
        self.assertEqual(config["quantization_config"],
                         {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128]})
        self.assertIsNotNone(transformers.AutoConfig.from_pretrained(folder).quantization_config)


def file_of(header, data=b""):
    text = header if isinstance(header, bytes) else header.encode()
    return struct.pack("<Q", len(text)) + text + data


def tensor(dtype="F32", shape="[2]", offsets="[0,8]"):
    return f'{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}}}'


# Every rule of the format from both sides.
FILES = {
    "empty file": b"",
    "seven bytes": b"1234567",
    "nothing but an empty header": file_of("{}"),
    "header of length 0": struct.pack("<Q", 0),
    "length beyond the file": struct.pack("<Q", 100) + b"{}",
    "length one beyond the file": struct.pack("<Q", 3) + b"{}",
    "length 2^64-1": struct.pack("<Q", 2**64 - 1) + b"{}",
    "length beyond 100 MB": struct.pack("<Q", 100_000_001) + b"{}",
    "padded with spaces": file_of("{}      "),
    "starts with a space": file_of(" {}"),
    "starts with a list": file_of("[]"),
    "text after the JSON": file_of("{}x"),
    "two objects": file_of("{}{}"),
    "cut JSON": file_of('{"w":' + tensor(), bytes(8)),
    "trailing comma": file_of('{"w":' + tensor() + ",}", bytes(8)),
    "bad UTF-8": file_of(b'{"\xff":' + tensor().encode() + b"}", bytes(8)),
    "UTF-8 name": file_of('{"gewicht-\u00fc":' + tensor() + "}", bytes(8)),
    "lone surrogate": file_of('{"\\ud800":' + tensor() + "}", bytes(8)),
    "one tensor": file_of('{"w":' + tensor() + "}", bytes(8)),
    "NaN and infinity inside": file_of('{"w":' + tensor() + "}", struct.pack("<ff", float("nan"), float("inf"))),
    "scalar": file_of('{"w":' + tensor(shape="[]", offsets="[0,4]") + "}", bytes(4)),
    "without elements": file_of('{"w":' + tensor(shape="[0,3]", offsets="[0,0]") + "}"),
    "without elements between others": file_of(
        '{"a":' + tensor("U8", "[2]", "[0,2]") + ',"b":' + tensor("F32", "[0]", "[2,2]") + ',"c":' +
        tensor("U8", "[1]", "[2,3]") + "}", bytes(3)),
    "out of order": file_of('{"b":' + tensor("U8", "[1]", "[1,2]") + ',"a":' + tensor("U8", "[1]", "[0,1]") + "}", bytes(2)),
    "unaligned": file_of('{"a":' + tensor("U8", "[1]", "[0,1]") + ',"b":' + tensor("F32", "[1]", "[1,5]") + "}", bytes(5)),
    "metadata": file_of('{"__metadata__":{"format":"pt"}}'),
    "a name twice": file_of('{"w":' + tensor() + ',"w":' + tensor(offsets="[8,16]") + "}", bytes(16)),
    "a field twice": file_of('{"w":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}}', bytes(8)),
    "a field that nobody knows": file_of('{"w":{"extra":1,"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', bytes(8)),
    "metadata twice": file_of('{"__metadata__":{},"__metadata__":{}}'),
    "a metadata name twice": file_of('{"__metadata__":{"a":"1","a":"2"}}'),
    "metadata is null": file_of('{"__metadata__":null}'),
    "NUL in a name": file_of('{"a\\u0000b":' + tensor() + "}", bytes(8)),
    "65 dimensions": file_of('{"w":' + tensor("U8", "[" + ",".join(["1"] * 65) + "]", "[0,1]") + "}", bytes(1)),
    "64 dimensions": file_of('{"w":' + tensor("U8", "[" + ",".join(["1"] * 64) + "]", "[0,1]") + "}", bytes(1)),
    "without elements but overflowing": file_of('{"w":' + tensor(shape="[0,4611686018427387904,8]", offsets="[0,0]") + "}"),
    "padded with other white space": file_of("{} \n\t\r"),
    "metadata with a number": file_of('{"__metadata__":{"a":1}}'),
    "metadata is a list": file_of('{"__metadata__":[]}'),
    "tensor is a number": file_of('{"w":3}'),
    "no dtype": file_of('{"w":{"shape":[2],"data_offsets":[0,8]}}', bytes(8)),
    "no shape": file_of('{"w":{"dtype":"F32","data_offsets":[0,8]}}', bytes(8)),
    "no offsets": file_of('{"w":{"dtype":"F32","shape":[2]}}', bytes(8)),
    "unknown dtype": file_of('{"w":' + tensor("F128") + "}", bytes(8)),
    "dtype in lower case": file_of('{"w":' + tensor("f32") + "}", bytes(8)),
    "negative dimension": file_of('{"w":' + tensor(shape="[-1,-2]") + "}", bytes(8)),
    "fractional dimension": file_of('{"w":' + tensor(shape="[2.0]") + "}", bytes(8)),
    "shape overflows": file_of('{"w":' + tensor(shape="[4611686018427387904,8]") + "}", bytes(8)),
    "shape wraps to zero": file_of('{"w":' + tensor("U8", "[4294967296,4294967296]", "[0,0]") + "}"),
    "dimension beyond 64 bits": file_of('{"w":' + tensor(shape="[18446744073709551616]") + "}", bytes(8)),
    "offsets reversed": file_of('{"w":' + tensor(offsets="[8,0]") + "}", bytes(8)),
    "offsets negative": file_of('{"w":' + tensor(offsets="[-8,0]") + "}", bytes(8)),
    "offsets fractional": file_of('{"w":' + tensor(offsets="[0,8.0]") + "}", bytes(8)),
    "one offset": file_of('{"w":' + tensor(offsets="[8]") + "}", bytes(8)),
    "three offsets": file_of('{"w":' + tensor(offsets="[0,8,8]") + "}", bytes(8)),
    "offsets too long": file_of('{"w":' + tensor(offsets="[0,9]") + "}", bytes(9)),
    "offsets too short": file_of('{"w":' + tensor(offsets="[0,7]") + "}", bytes(7)),
    "offsets that wrap": file_of('{"w":' + tensor(offsets="[18446744073709551612,4]") + "}", bytes(8)),
    "hole": file_of('{"a":' + tensor() + ',"b":' + tensor(offsets="[12,20]") + "}", bytes(20)),
    "hole at the start": file_of('{"a":' + tensor(offsets="[4,12]") + "}", bytes(12)),
    "overlap": file_of('{"a":' + tensor() + ',"b":' + tensor(offsets="[4,12]") + "}", bytes(12)),
    "the same bytes twice": file_of('{"a":' + tensor() + ',"b":' + tensor() + "}", bytes(8)),
    "one byte short": file_of('{"w":' + tensor() + "}", bytes(7)),
    "one byte too many": file_of('{"w":' + tensor() + "}", bytes(9)),
    "bytes without tensors": file_of("{}", bytes(5)),
    **{f"dtype {name}": file_of('{"w":' + tensor(name, "[3]", f"[0,{3 * size}]") + "}", bytes(3 * size))
       for name, size in (("BOOL", 1), ("U8", 1), ("I8", 1), ("F8_E5M2", 1), ("F8_E4M3", 1), ("I16", 2), ("U16", 2), ("F16", 2),
                          ("BF16", 2), ("I32", 4), ("U32", 4), ("F32", 4), ("F64", 8), ("I64", 8), ("U64", 8))},
}


# What the reference reader takes and ciuic refuses, and why (docs/hugging_face.md says the same).
REFUSED_BY_CIUIC_ALONE = {
    "starts with a space",  # the format's text: the header must begin with {
    "a metadata name twice",  # the format's text: no duplicate keys
    "metadata is null",  # the format's text: a map of text to text
    "NUL in a name",
    "65 dimensions",
    "without elements but overflowing",  # strides would wrap
}


class Strictness(unittest.TestCase):
    def test_both_accept_or_refuse(self):
        accepted, ours_alone, theirs_alone = 0, set(), set()
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "x.safetensors"
            for name, data in FILES.items():
                file.write_bytes(data)
                try:
                    with safe_open(file, "np") as opened:
                        list(opened.keys())
                    theirs = True
                except (SafetensorError, OSError):
                    theirs = False
                done = run("checkpoint", "verify", file)
                self.assertIn(done.returncode, (0, 6), f"{name}: {done.stderr}")
                accepted += theirs
                if theirs != (done.returncode == 0):
                    (theirs_alone if theirs else ours_alone).add(name)
        self.assertEqual(ours_alone, set())
        self.assertEqual(theirs_alone, REFUSED_BY_CIUIC_ALONE)
        self.assertGreater(accepted, 20)
        self.assertLess(accepted, len(FILES) - 25)


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]])
