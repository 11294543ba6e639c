"""The rates that estimates rest on, each with where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PERFORMANCE = "docs/performance.md"
EMBEDDED = "measured in the embedded study"
ASSUMED = "assumption"


@dataclass(frozen=True)
class Rate:
    """A number that estimates rest on.

    Attributes:
        value: in `unit`.
        unit: for a person.
        what: what takes it.
        source: the page it is measured on, `measured in the embedded study`, or `assumption`.
    """

    value: float
    unit: str
    what: str
    source: str


RATES: Mapping[str, Rate] = {
    "gpu_tokens": Rate(
        25_000,
        "tokens per GPU-second",
        "encoding by 12 layers of 768 in fp16 on an 11 GB card, all representations included; other"
        " encoders in proportion to their weights",
        ASSUMED,
    ),
    "cpu_tokens": Rate(
        3_000,
        "tokens per CPU-second",
        "encoding by 6 layers of 384 in fp32, all representations included; other encoders in"
        " proportion to their weights",
        EMBEDDED,
    ),
    "gpu_sae_states": Rate(
        100_000,
        "states per GPU-second",
        "a training step of an SAE of 768 dimensions and 8,192 features on an 11 GB card; others in"
        " proportion to their product",
        ASSUMED,
    ),
    "cpu_sae_seconds": Rate(
        112e-6, "CPU-seconds per state", "the same step on a processor", PERFORMANCE
    ),
    "query_seconds": Rate(
        0.15e-3, "CPU-seconds per query", "all eight rankings: selection and rescoring", PERFORMANCE
    ),
    "document_seconds": Rate(
        0.9e-9, "CPU-seconds per query and document", "a look at every document", PERFORMANCE
    ),
    "shared_seconds": Rate(
        1.25e-9,
        "CPU-seconds per query, document and shared feature",
        "the terms of all eight scores",
        PERFORMANCE,
    ),
    "shared_features": Rate(
        0.107,
        "of a query's features",
        "what a document shares, unless its features are a larger part of all (data of shape z)",
        PERFORMANCE,
    ),
    "cells": Rate(0.18, "of the first cell", "each further (k1, b) searched with it", PERFORMANCE),
    "index_seconds": Rate(
        21e-9, "CPU-seconds per stored weight", "building an index, per budget", PERFORMANCE
    ),
    "measures": Rate(
        0.3, "of the search", "measures, ties and label-free statistics of rankings", EMBEDDED
    ),
    "job_seconds": Rate(4, "CPU-seconds per scoring job", "start, loading, tables", EMBEDDED),
    "weight_bytes": Rate(8, "bytes per stored weight", "a feature and its value", "the format"),
    "vector_bytes": Rate(24, "bytes per vector", "its id and its place", EMBEDDED),
    "state_bytes": Rate(2, "bytes per coordinate", "dense states, float16", "the format"),
    "row_bytes": Rate(5, "bytes per row and query", "eight qualities, compressed", EMBEDDED),
    "run_bytes": Rate(11, "bytes per ranked document", "a run, compressed", EMBEDDED),
}
"""Every rate an estimate uses; `assumption` marks those that nobody has measured here."""
