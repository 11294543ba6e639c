"""Brute force in float64, written apart from the engine, on dense matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whencount.scoring import (
    CONFIGURATIONS,
    Configuration,
    Parameters,
    inverse_document_frequency,
    length_factor,
    term_weight,
)
from whencount.vectors import SparseVectors

Array = NDArray[Any]


def vectors(dense: Array, prefix: str = "d") -> SparseVectors:
    """Sparse vectors of a dense matrix, with ids d0, d1, ..."""
    return SparseVectors.from_dense([f"{prefix}{row}" for row in range(len(dense))], dense)


def textbook_scores(
    documents: Array,
    queries: Array,
    configuration: Configuration,
    parameters: Parameters,
    document_frequency: Array | None = None,
) -> Array:
    """The scorer of the study as it is printed, (queries, documents)."""
    documents, queries = documents.astype(np.float64), queries.astype(np.float64)
    live = documents > 0
    frequency = live.sum(axis=0) if document_frequency is None else document_frequency
    lengths = documents.sum(axis=1)
    factor = np.ones(len(documents))
    if configuration.length and len(documents):
        factor = length_factor(lengths, float(lengths.mean()), parameters.b)
    weights = np.zeros_like(documents)
    rows, features = np.nonzero(live)
    weights[rows, features] = term_weight(
        documents[rows, features], factor[rows], configuration.saturation, parameters.k1
    )
    if configuration.idf:
        queries = queries * inverse_document_frequency(frequency, len(documents))
    return queries @ weights.T


def defined_keys(
    documents: Array,
    queries: Array,
    configuration: Configuration,
    parameters: Parameters,
    document_frequency: Array | None = None,
) -> Array:
    """The keys that `whencount.search` defines, term by term, (queries, documents)."""
    documents, queries = documents.astype(np.float64), queries.astype(np.float64)
    live = documents > 0
    full = live.any(axis=1)
    lengths = np.zeros(len(documents))
    for row in range(len(documents)):
        for value in np.sort(documents[row][live[row]])[::-1]:
            lengths[row] += value
    frequency = live.sum(axis=0) if document_frequency is None else document_frequency
    keys = np.zeros((len(queries), len(documents)))
    if not full.any():
        return keys
    average = math.fsum(lengths) / len(lengths)
    length = configuration.length and not (configuration.saturation and parameters.k1 == 0)
    factor = length_factor(lengths, average, parameters.b if length else 0.0)
    peaks = documents.max(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        if configuration.saturation:
            pull = parameters.k1 * factor
            top = peaks / (peaks + pull)
            ratios = (documents / (documents + pull[:, None])) * (1.0 / top)[:, None]
            share = top / top[full].max()
        else:
            ratios = documents * (1.0 / peaks)[:, None]
            share = (peaks / peaks.max()) * (factor[full].min() / factor)
    ratios[documents == peaks[:, None]] = 1.0
    if configuration.idf:
        idf = inverse_document_frequency(frequency, len(documents))
        queries = queries * (idf / idf[live.any(axis=0)].max())
    for feature in range(documents.shape[1]):
        rows = live[:, feature]
        keys[:, rows] += queries[:, [feature]] * ratios[rows, feature]
    keys[:, full] *= share[full]
    scaled = keys * 8193.0
    return scaled - (scaled - keys)


def ranked(keys: Array, depth: int) -> list[Array]:
    """Per query, positions by key falling, then position rising; keys of 0 are left out."""
    result = []
    for row in keys:
        order = np.argsort(-row, kind="stable")
        result.append(order[row[order] > 0][:depth])
    return result


def every_ranking(
    documents: Array,
    queries: Array,
    parameters: Sequence[Parameters],
    depth: int,
    configurations: Sequence[Configuration] = CONFIGURATIONS,
    document_frequency: Array | None = None,
) -> list[list[list[Array]]]:
    """The positions of `ranked` by cell, configuration and query."""
    return [
        [
            ranked(defined_keys(documents, queries, item, cell, document_frequency), depth)
            for item in configurations
        ]
        for cell in parameters
    ]
