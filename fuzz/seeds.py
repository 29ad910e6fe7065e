"""Write the first inputs of each fuzz target, from which a fuzzer goes on.

    python fuzz/seeds.py [FOLDER]        fuzz/corpus without one

Inputs of structured targets are bytes that choose: zeros are calls in which all is right,
so a few other bytes among zeros are calls in which a few things are not. They are the same
on every run.
"""

from __future__ import annotations

import random
import struct
import sys
from pathlib import Path

STRUCTURED = {"frame": 200, "attributes": 160, "describe": 260, "batch": 200, "host": 120}

VALUES = {
    # the first byte is the check; then its numbers, then text
    "shape": b"\x00f32[8,4]",
    "shape-scalar": b"\x00bf16[]",
    "shape-empty": b"\x00s64[0,3]",
    "shape-large": b"\x00u8[9223372036854775807,2]",
    "value-bool": b"\x01\x00true",
    "value-s8": b"\x01\x01-128",
    "value-u64": b"\x01\x080xffffffffffffffff",
    "value-f16": b"\x01\x0965504",
    "value-f32": b"\x01\x0a1e-45",
    "value-f64": b"\x01\x0b-inf",
    "value-c64": b"\x01\x0c(1.5-2j)",
    "value-e4m3": b"\x01\x12448",
    "number": b"\x02" + bytes(18) + b"12",
    "array": b"\x03f32[8,4]=1.5",
    "array-complex": b"\x03c128[2]=1e308+2j",
    "half": b"\x04\xff\x7b",
    "elements": b"\x05\x0a\x14" + bytes(range(80)),
}


def npy(descr: str, shape: str, data: bytes, version: int = 1, order: str = "False") -> bytes:
    """A .npy file behind the byte that names a type."""
    text = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}".encode()
    size = 10 if version == 1 else 12
    text += b" " * (-(size + len(text) + 1) % 64) + b"\n"
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\0\x93NUMPY" + bytes([version, 0]) + length + text + data


NPY = {
    "float32": npy("<f4", "(2, 3)", bytes(24)),
    "scalar": npy("<i8", "()", bytes(8)),
    "empty": npy("<c8", "(0, 2)", b""),
    "bool": npy("|b1", "(2,)", b"\0\1"),
    "not-bool": npy("|b1", "(2,)", b"\0\2"),
    "version-2": npy("<f8", "(1,)", bytes(8), version=2),
    "fortran": npy("<f4", "(2, 2)", bytes(16), order="True"),
    "big-endian": npy(">f4", "(1,)", bytes(4)),
    "bfloat16": b"\1" + npy("<V2", "(2,)", bytes(4))[1:],
    "short": npy("<f4", "(2, 3)", bytes(23)),
    "large": npy("<f4", "(4611686018427387904, 4)", b""),
    "no-file": b"\0PK\3\4",
}


def structured(name: str, length: int) -> dict[str, bytes]:
    """Zeros, and zeros with more and more other bytes among them."""
    chooser = random.Random(name)
    inputs = {"zeros": bytes(length)}
    for number in range(24):
        rate = (1 + number % 8) / 16
        data = bytearray(length)
        for i in range(length):
            if chooser.random() < rate:
                data[i] = chooser.randrange(256)
        data[0] = number % 3 if name == "frame" else data[0]
        inputs[f"mixed-{number}"] = bytes(data)
    if name == "frame":  # the enum of three values is 3, all else is right
        inputs["enum"] = bytes(97) + b"\3" + bytes(length - 98)
    if name == "batch":  # the last byte: a grid, without and with outputs that are cleared
        for number in range(12):
            last = (48, 144)[number % 2] + number // 2
            inputs[f"grid-{number}"] = inputs[f"mixed-{2 * number}"][:-1] + bytes([last])
    return inputs


def main() -> int:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "corpus"
    seeds = {name: structured(name, length) for name, length in STRUCTURED.items()}
    seeds["values"] = VALUES
    seeds["npy"] = NPY
    for target, inputs in seeds.items():
        (folder / target).mkdir(parents=True, exist_ok=True)
        for name, data in inputs.items():
            (folder / target / f"seed-{name}").write_bytes(data)
    print(f"{sum(len(inputs) for inputs in seeds.values())} inputs in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
