"""From a person's own vectors and judgements to what each switch does for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whencount import attribution, diagnostics, measures
from whencount.attribution import QUALITY_COLUMNS
from whencount.engine.index import Index
from whencount.errors import InputError
from whencount.judgements import Judgements
from whencount.progress import progress
from whencount.run_files import WRITERS, RunWriter
from whencount.scoring import CONFIGURATIONS, Configuration, Parameters
from whencount.search import Rankings, search
from whencount.significance import EFFECTS, FAMILIES, bootstrap, holm
from whencount.ties import complete_borders
from whencount.vectors import SparseVectors

if TYPE_CHECKING:
    import pandas as pd

    from whencount.collections.model import Qrels

CUTOFF = 10
_QUERIES_PER_BATCH = 2_048
_RANKS_PER_BATCH = 1 << 25


@dataclass(frozen=True)
class Scorer:
    """How vectors are capped, scored and searched.

    Attributes:
        parameters: (k1, b).
        query_budget: weights kept per query; None keeps all.
        document_budget: weights kept per document; None keeps all.
        depth: documents per ranking, at most.
        threads: of the search; None leaves it to the engine.

    Raises:
        InputError: depth is below 1.
    """

    parameters: Parameters = field(default_factory=Parameters)
    query_budget: int | None = None
    document_budget: int | None = None
    depth: int = 100
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise InputError(f"depth {self.depth} is below 1; ask for at least one document")

    def rankings(
        self,
        documents: SparseVectors,
        queries: SparseVectors,
        configurations: Sequence[Configuration] = CONFIGURATIONS,
        *,
        depth: int | None = None,
    ) -> Iterator[tuple[int, int, Rankings]]:
        """Search a batch of queries at a time; yield (first query, end, rankings).

        Args:
            documents: already capped.
            queries: already capped.
            depth: in place of `self.depth`.

        Raises:
            InputError: threads is below 1, or a weight is out of range.
        """
        index = Index.build(documents)
        # No ranking is longer than the collection; the border of the measure must stay visible.
        depth = min(self.depth if depth is None else depth, max(len(documents), CUTOFF + 1))
        per_query = max(1, depth * len(configurations))
        batch = min(_QUERIES_PER_BATCH, max(1, _RANKS_PER_BATCH // per_query))
        starts = range(0, len(queries), batch)
        ends = [min(start + batch, len(queries)) for start in starts]
        sizes = [end - start for start, end in zip(starts, ends, strict=True)]
        for start, end in progress(
            zip(starts, ends, strict=True), len(queries), "searching", "query", sizes
        ):
            found = search(
                index,
                queries.slice(start, end),
                (self.parameters,),
                depth=depth,
                configurations=configurations,
                threads=self.threads,
            )
            yield start, end, found


def write_runs(
    folder: Path,
    documents: SparseVectors,
    queries: SparseVectors,
    scorer: Scorer,
    configurations: Sequence[Configuration] = CONFIGURATIONS,
    file_format: str = "trec",
) -> int:
    """Search all queries and write one run per configuration, `011.trec` say, into `folder`.

    Args:
        documents: not yet capped.
        queries: not yet capped.
        file_format: a key of `run_files.WRITERS`.

    Returns:
        How many queries have an empty ranking under all configurations.

    Raises:
        InputError: as `Scorer.rankings`, or an id cannot stand in the format.
    """
    import pyarrow as pa

    documents = documents.cap(scorer.document_budget)
    queries = queries.cap(scorer.query_budget)
    document_ids = pa.array(documents.ids, type=pa.string())
    empty = 0
    with ExitStack() as stack:
        writers: list[RunWriter] = [
            stack.enter_context(
                WRITERS[file_format](
                    folder / f"{configuration}.{file_format}",
                    document_ids,
                    f"whencount-{configuration}",
                )
            )
            for configuration in configurations
        ]
        for start, end, found in scorer.rankings(documents, queries, configurations):
            empty += int((found.counts[0].max(axis=0) == 0).sum())
            for number, writer in enumerate(writers):
                writer.append(
                    queries.ids[start:end],
                    found.positions[0, number],
                    found.scores[0, number],
                    found.counts[0, number],
                )
    return empty


@dataclass(frozen=True)
class Decomposition:
    """Quality of the eight configurations of one collection, and what follows from it.

    Attributes:
        query_ids: the evaluated queries, those with a positive judgement.
        per_query: float64, shape (evaluated, 8), nDCG@10.
        quality: float64, shape (8,), its mean.
        tie_share: float64, shape (8,), share of evaluated queries with a tie across rank 10.
        expected: float64, shape (8,), mean tie-expected nDCG@10.
        p: bootstrap p of the effects, in the order of EFFECTS.
        holm: Holm's p within each family.
        index: index statistics of the capped documents.
        unknown_documents: judgements that name a document outside the collection.
        unknown_queries: judged queries that have no vector.
        without_features: queries without a feature.
    """

    query_ids: NDArray[np.object_]
    per_query: NDArray[np.float64]
    quality: NDArray[np.float64]
    tie_share: NDArray[np.float64]
    expected: NDArray[np.float64]
    p: dict[str, float]
    holm: dict[str, float]
    index: dict[str, float]
    unknown_documents: int
    unknown_queries: int
    without_features: int

    def summary(self) -> dict[str, Any]:
        """The JSON object that `whencount decompose --json` prints."""
        return attribution.summary(self.quality) | {"p": self.p, "holm": self.holm}

    def row(self) -> pd.DataFrame:
        """One line: queries, q000.., targets, p_.., holm_.., ties and index statistics."""
        import pandas as pd

        frame = pd.DataFrame([self.quality], columns=list(QUALITY_COLUMNS))
        frame.insert(0, "queries", len(self.query_ids))
        frame = pd.concat([frame, attribution.targets(frame)], axis=1)
        more = {
            **{f"p_{effect}": value for effect, value in self.p.items()},
            **{f"holm_{effect}": value for effect, value in self.holm.items()},
            **{
                f"{name}_{configuration}": float(value)
                for name, values in (("tie_share", self.tie_share), ("expected", self.expected))
                for configuration, value in zip(CONFIGURATIONS, values, strict=True)
            },
            **self.index,
        }
        return pd.concat([frame, pd.DataFrame([more])], axis=1)

    def per_query_table(self) -> pd.DataFrame:
        """One line per evaluated query: query_id, q000..q111."""
        import pandas as pd

        frame = pd.DataFrame(self.per_query, columns=list(QUALITY_COLUMNS))
        frame.insert(0, "query_id", self.query_ids)
        return frame


def decompose(
    documents: SparseVectors,
    queries: SparseVectors,
    qrels: Qrels,
    scorer: Scorer,
    *,
    draws: int = 10_000,
    seed: int = 0,
) -> Decomposition:
    """Search, measure, attribute and test the eight configurations.

    Args:
        documents: not yet capped.
        queries: not yet capped.
        qrels: judgements; those of unknown documents count in the ideal ranking.
        draws: of the bootstrap.
        seed: of the bootstrap.

    Raises:
        InputError: no query with a vector has a positive judgement, or as `Scorer.rankings`.
    """
    judgements = Judgements.from_qrels(qrels, queries.ids, documents.ids)
    evaluated = judgements.evaluated
    if not evaluated.any():
        common = int(judgements.judged.sum())
        raise InputError(
            f"no query to evaluate: of {len(queries)} queries {common} are judged and none has a"
            f" relevant document ({judgements.unknown_queries} judged queries have no vector);"
            " check that the ids of queries and qrels belong together"
        )
    if draws < 1:
        raise InputError(f"{draws} bootstrap draws; at least 1 is needed")
    documents = documents.cap(scorer.document_budget)
    queries = queries.cap(scorer.query_budget)
    per_query, tied, expected = [], [], []
    # One rank more than measured shows whether the border falls inside a tie.
    deep = max(scorer.depth, CUTOFF + 1)
    for start, end, found in scorer.rankings(documents, queries, depth=deep):
        part = judgements.slice(start, end)
        counts = np.minimum(found.counts, np.int32(scorer.depth))
        per_query.append(measures.ndcg(found.positions, counts, part, CUTOFF)[0])
        tied.append(measures.border_tied(found.scores, found.counts, CUTOFF)[0])
        borders = complete_borders(
            documents, queries.slice(start, end), found, part, (scorer.parameters,), cutoff=CUTOFF
        )
        expected.append(measures.tie_expected_ndcg(found, part, CUTOFF, borders)[0])
    quality = np.concatenate(per_query, axis=-1)
    kept = np.ascontiguousarray(quality[:, evaluated].T)
    # The name is fixed: the p of a person's data does not depend on what the files are called.
    result = bootstrap(kept[None], collection="decompose", draws=draws, seed=seed)
    p = dict(zip(EFFECTS, result.p[0].tolist(), strict=True))
    adjusted: dict[str, float] = {}
    for effects in FAMILIES.values():
        values = holm([p[effect] for effect in effects]).tolist()
        adjusted |= dict(zip(effects, values, strict=True))
    return Decomposition(
        query_ids=queries.ids[evaluated],
        per_query=kept,
        quality=measures.mean_quality(quality, judgements),
        tie_share=measures.mean_quality(
            np.concatenate(tied, axis=-1).astype(np.float64), judgements
        ),
        expected=measures.mean_quality(np.concatenate(expected, axis=-1), judgements),
        p=p,
        holm=adjusted,
        index=diagnostics.index_statistics(documents),
        unknown_documents=judgements.unknown_documents,
        unknown_queries=judgements.unknown_queries,
        without_features=int((queries.row_sizes() == 0).sum()),
    )
