# SPDX-License-Identifier: MIT
"""Safetensors files with the standard library alone: tensors as flat lists."""
import array
import json
import struct
import sys

TYPES = {"F32": "f", "F64": "d", "I64": "q", "I32": "i", "U8": "B"}
assert sys.byteorder == "little"


def read_raw(path):
    """{name: (dtype, shape, bytes)}, of any types"""
    data = open(path, "rb").read()
    (size,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + size])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        tensors[name] = (entry["dtype"], tuple(entry["shape"]), data[8 + size + begin:8 + size + end])
    return tensors


def read(path):
    """{name: (shape, array.array)}"""
    return {name: (shape, array.array(TYPES[dtype], data)) for name, (dtype, shape, data) in read_raw(path).items()}


def write(path, tensors):
    """tensors: {name: (shape, array.array)}"""
    codes = {code: name for name, code in TYPES.items()}
    write_raw(path, {name: (codes[values.typecode], shape, values.tobytes()) for name, (shape, values) in tensors.items()})


def write_raw(path, tensors):
    """tensors: {name: (dtype, shape, bytes)}"""
    header, data = {}, b""
    for name, (dtype, shape, body) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [len(data), len(data) + len(body)]}
        data += body
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)
