"""A small text with some structure, and the small OLMoE that tests train on it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pandas as pd

from whencount.experts.texts import prepare_text

PARTS = {"train": 0.5, "validation": 0.15, "calibration": 0.15, "evaluation": 0.2}
SIZES: dict[str, Any] = {
    "vocabulary": 300,
    "hidden": 16,
    "intermediate": 8,
    "layers": 2,
    "heads": 2,
    "experts": 8,
    "active": 2,
    "context": 16,
    "tokens": 16 * 4 * 12,
    "batch": 4,
    "validations": 3,
}


def text_file(path: Path, documents: int = 60) -> Path:
    """JSON lines of sentences made of few words, so that something can be learned."""
    draws = random.Random(0)
    lines = []
    for number in range(documents):
        pairs = [f"the {draws.choice(['cat', 'dog'])} sat" for _ in range(draws.randint(8, 16))]
        lines.append(json.dumps({"id": f"d{number}", "text": " and ".join(pairs)}))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def prepared_text(path: Path) -> pd.DataFrame:
    """It, dealt out in parts."""
    source = {"source": "file", "path": str(text_file(path))}
    return prepare_text("sentences", source, PARTS, seed=0)
