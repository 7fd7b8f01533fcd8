# SPDX-License-Identifier: MIT
"""Safetensors files with the standard library alone: F32 and I64 tensors as flat lists."""
import array
import json
import struct
import sys

TYPES = {"F32": "f", "F64": "d", "I64": "q"}
assert sys.byteorder == "little"


def read(path):
    """{name: (shape, array.array)}"""
    data = open(path, "rb").read()
    (size,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + size])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        values = array.array(TYPES[entry["dtype"]])
        values.frombytes(data[8 + size + begin:8 + size + end])
        tensors[name] = (tuple(entry["shape"]), values)
    return tensors


def write(path, tensors):
    """tensors: {name: (shape, array.array)}"""
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        dtype = {code: name for name, code in TYPES.items()}[values.typecode]
        body = values.tobytes()
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [len(data), len(data) + len(body)]}
        data += body
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)
