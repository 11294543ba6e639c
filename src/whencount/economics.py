"""What an index of sparse vectors costs: profiles, effective support, posting work, payload.

`p_j` is the share of documents in which feature j is active, `q_j` that of queries. An engine
without pruning multiplies once per posting of every active feature of the query, so an average one
costs `N sum_j q_j p_j` multiplications (the FLOPS of Paria et al.,
2020, arXiv:2004.05665, times N). How evenly a profile is spread is its effective support,
`(sum p)^2 / sum p^2`: the number of features that, all equally frequent, would cost as much.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whencount.errors import InputError
from whencount.vectors import SparseVectors

BYTES_PER_POSTING = 8
"""A posting kept plainly: the number of its document, int32, and its weight, float32."""
CENTROID_BYTES = 4
"""The number of a token's centroid."""


def log_saturation(logits: ArrayLike) -> NDArray[np.float64]:
    """SPLADE's `ln(1 + max(0, logit))`, float64, the shape of `logits` (arXiv:2107.05720)."""
    return np.log1p(np.maximum(np.asarray(logits, dtype=np.float64), 0.0))


def effective_support(profile: ArrayLike) -> float:
    """`(sum p)^2 / sum p^2` of a non-negative profile, shape (V,); NaN where all of it is 0.

    Raises:
        InputError: a value is negative, NaN or infinite.
    """
    values = _profile(profile)
    squares = float(values @ values)
    return float(values.sum()) ** 2 / squares if squares > 0 else float("nan")


def posting_work(documents: int, document_profile: ArrayLike, query_profile: ArrayLike) -> float:
    """Multiplications of an average query, `N sum_j q_j p_j`.

    Args:
        documents: N.
        document_profile, query_profile: p and q, shape (V,) each, shares from 0 to 1.

    Raises:
        InputError: the two have other lengths, or a value is negative, NaN or infinite.
    """
    p, q = _profile(document_profile), _profile(query_profile)
    if p.shape != q.shape:
        raise InputError(
            f"the profiles have {len(p)} and {len(q)} features; documents and queries need one"
            " vocabulary"
        )
    return documents * float(p @ q)


def posting_work_of_means(
    documents: int, mean_document_nnz: float, mean_query_nnz: float, support: float
) -> float:
    """The same where queries draw features as documents do: `N nnz_d nnz_q / support`."""
    return documents * mean_document_nnz * mean_query_nnz / support


def postings_payload(documents: int, mean_document_nnz: float) -> float:
    """Bytes of all postings, kept plainly."""
    return documents * mean_document_nnz * BYTES_PER_POSTING


def dense_payload(documents: int, width: int, bytes_per_number: int = 4) -> int:
    """Bytes of a dense vector per document."""
    return documents * width * bytes_per_number


def flops(mean_weights: ArrayLike) -> float:
    """The FLOPS regulariser `sum_j a_j^2` of mean weights a, shape (V,) (arXiv:2004.05665)."""
    weights = _profile(mean_weights)
    return float(weights @ weights)


def flops_gradient(mean_weights: ArrayLike) -> NDArray[np.float64]:
    """Its gradient by the mean weights, `2 a_j`: frequent features are pressed the most."""
    return 2.0 * _profile(mean_weights)


@dataclass(frozen=True)
class Economics:
    """What vectors of documents and queries cost an engine.

    Attributes:
        documents, queries, vocabulary_size: N, the number of queries, V.
        live_features: features that some document has.
        document_nnz, query_nnz: mean stored weights.
        document_nnz_sd, query_nnz_sd: their population standard deviations.
        activation_support: effective support of p_j.
        weight_support: effective support of the mean weights of documents.
        query_support: effective support of q_j.
        posting_work: multiplications of an average query.
        posting_work_share: the same over N V, all that a dense product would take.
        payload_bytes: all postings, kept plainly.
    """

    documents: int
    queries: int
    vocabulary_size: int
    live_features: int
    document_nnz: float
    query_nnz: float
    document_nnz_sd: float
    query_nnz_sd: float
    activation_support: float
    weight_support: float
    query_support: float
    posting_work: float
    posting_work_share: float
    payload_bytes: int

    def columns(self) -> dict[str, float | int]:
        """The attributes by name."""
        return asdict(self)


@dataclass(frozen=True)
class Profile:
    """How many vectors have each feature, and how heavily; merged exactly from parts.

    Attributes:
        rows: how many vectors there are.
        nonzeros: stored weights.
        squares: sum of the squares of weights per vector.
        counts: int64, (V,): vectors that have each feature.
        sums: float64, (V,): summed weights of each feature.
    """

    rows: int
    nonzeros: int
    squares: int
    counts: NDArray[np.int64]
    sums: NDArray[np.float64]

    @classmethod
    def empty(cls, vocabulary_size: int) -> Profile:
        """Of no vector."""
        return cls(0, 0, 0, np.zeros(vocabulary_size, np.int64), np.zeros(vocabulary_size))

    def __add__(self, other: Profile) -> Profile:
        return Profile(
            self.rows + other.rows,
            self.nonzeros + other.nonzeros,
            self.squares + other.squares,
            self.counts + other.counts,
            self.sums + other.sums,
        )

    @property
    def activation(self) -> NDArray[np.float64]:
        """Share of vectors in which each feature is active, (V,); zeros without any vector."""
        return self.counts / max(1, self.rows)

    @property
    def weights(self) -> NDArray[np.float64]:
        """Mean weight of each feature over all vectors, (V,); zeros without any vector."""
        return self.sums / max(1, self.rows)

    @property
    def mean_nonzeros(self) -> float:
        """Stored weights per vector."""
        return self.nonzeros / max(1, self.rows)

    @property
    def nonzeros_sd(self) -> float:
        """Population standard deviation of that; from whole numbers, so without cancellation."""
        spread = self.rows * self.squares - self.nonzeros**2
        return math.sqrt(spread) / max(1, self.rows)


def profile_of(vectors: SparseVectors) -> Profile:
    """The profile of vectors as they are stored, after any cap."""
    vocabulary = vectors.vocabulary_size
    sizes = vectors.row_sizes()
    values = vectors.values.astype(np.float64)
    return Profile(
        len(vectors),
        vectors.nonzeros,
        int((sizes * sizes).sum()),
        np.bincount(vectors.features, minlength=vocabulary).astype(np.int64),
        np.bincount(vectors.features, weights=values, minlength=vocabulary).astype(np.float64),
    )


def activation_profile(vectors: SparseVectors) -> NDArray[np.float64]:
    """Share of vectors in which each feature is active, shape (V,); zeros without any vector."""
    return profile_of(vectors).activation


def weight_profile(vectors: SparseVectors) -> NDArray[np.float64]:
    """Mean weight of each feature over all vectors, shape (V,); zeros without any vector."""
    return profile_of(vectors).weights


def economics(documents: SparseVectors, queries: SparseVectors) -> Economics:
    """Profiles and costs of vectors as they are stored, after any cap.

    Raises:
        InputError: documents and queries have other vocabularies, or there is nothing of one.
    """
    return economics_of(profile_of(documents), profile_of(queries))


def economics_of(documents: Profile, queries: Profile) -> Economics:
    """The same of profiles, which may have been added up shard by shard.

    Raises:
        InputError: as `economics`.
    """
    for profile, name in ((documents, "documents"), (queries, "queries")):
        if not profile.rows:
            raise InputError(f"there are no {name}, so nothing costs anything; give some")
    work = posting_work(documents.rows, documents.activation, queries.activation)
    vocabulary = len(documents.counts)
    return Economics(
        documents=documents.rows,
        queries=queries.rows,
        vocabulary_size=vocabulary,
        live_features=int(np.count_nonzero(documents.counts)),
        document_nnz=documents.mean_nonzeros,
        query_nnz=queries.mean_nonzeros,
        document_nnz_sd=documents.nonzeros_sd,
        query_nnz_sd=queries.nonzeros_sd,
        activation_support=effective_support(documents.activation),
        weight_support=effective_support(documents.weights),
        query_support=effective_support(queries.activation),
        posting_work=work,
        posting_work_share=work / (documents.rows * vocabulary),
        payload_bytes=documents.nonzeros * BYTES_PER_POSTING,
    )


@dataclass(frozen=True)
class LateInteraction:
    """What it costs to compare token vectors with each other (ColBERT, arXiv:2004.12832).

    Attributes:
        passages: how many there are.
        tokens: mean token vectors of a passage.
        query_tokens: token vectors of a query.
        width: numbers of a token vector.
        candidates: passages that are compared in full.
        encoder_parameters: of the model that encodes the query.
    """

    passages: int
    tokens: int
    query_tokens: int
    width: int
    candidates: int
    encoder_parameters: int

    @property
    def query_flops(self) -> int:
        """Encoding the query: two operations per parameter and token."""
        return 2 * self.encoder_parameters * self.query_tokens

    @property
    def token_dot_flops(self) -> int:
        """All products of query tokens with the candidates' tokens."""
        return 2 * self.candidates * self.tokens * self.query_tokens * self.width

    @property
    def total_flops(self) -> int:
        """Both together."""
        return self.query_flops + self.token_dot_flops

    @property
    def cross_encoder_ratio(self) -> float:
        """Reading query and candidate together in the same encoder, over `total_flops`."""
        together = 2 * self.encoder_parameters * (self.query_tokens + self.tokens)
        return together * self.candidates / self.total_flops

    def index_bytes(self, bytes_per_number: float, width: int | None = None) -> float:
        """Token vectors of all passages, each number in so many bytes."""
        return self.passages * self.tokens * (width or self.width) * bytes_per_number

    def residual_bytes(self, bits: int, centroids: int) -> float:
        """Residual codes (ColBERTv2, arXiv:2112.01488): a centroid's number in four bytes and
        `bits` per number for each token, and the codebook."""
        per_token = CENTROID_BYTES + self.width * bits / 8
        return self.passages * self.tokens * per_token + self.codebook_bytes(centroids)

    def codebook_bytes(self, centroids: int) -> int:
        """The centroids in fp16."""
        return centroids * self.width * 2

    def read_in_full(self, passages: int, bits: int) -> float:
        """Bytes read to compare so many passages in full by their residual codes."""
        return passages * self.tokens * (CENTROID_BYTES + self.width * bits / 8)

    def read_in_a_funnel(self, passages: int, survivors: int, bits: int) -> float:
        """Bytes read where centroids alone choose the survivors that are compared in full
        (PLAID, arXiv:2205.09707)."""
        numbers = passages * self.tokens * CENTROID_BYTES
        return numbers + self.read_in_full(survivors, bits)


def _profile(profile: ArrayLike) -> NDArray[np.float64]:
    values = np.asarray(profile, dtype=np.float64)
    bad = ~(np.isfinite(values) & (values >= 0))
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise InputError(
            f"feature {at} of the profile is {values[at]}; profiles are finite and not negative"
        )
    return values
