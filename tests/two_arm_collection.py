"""A made-up collection with two informed arms: relevant documents share a word and a direction."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from whencount.collections import PreparedCollection, open_collection, prepare
from whencount.fusion.evaluation import Inputs
from whencount.fusion.inputs import read_inputs
from whencount.references import bm25, dense, write_run
from whencount.scoring import Parameters

DEPTH = 30


@dataclass(frozen=True)
class Files:
    """Where the parts of a collection are."""

    name: str
    collection: PreparedCollection
    documents: Path
    queries: Path
    lexical_run: Path
    dense_run: Path

    def inputs(self, *others: Files, dimensions: int | None = None) -> Inputs:
        """What a job reads, with the queries of others as the foreign ones."""
        return read_inputs(
            self.collection,
            [self.documents],
            self.queries,
            [(other.collection, other.queries) for other in others],
            self.lexical_run,
            self.dense_run,
            Parameters(),
            depth=DEPTH,
            dimensions=dimensions,
        )


def make(folder: Path, name: str, seed: int, documents: int = 300, queries: int = 80) -> Files:
    """Write texts, states, judgements and runs of a collection."""
    random = np.random.default_rng(seed)
    source = folder / f"{name}-beir"
    (source / "qrels").mkdir(parents=True)
    words = np.array([f"{name}word{n}" for n in range(120)])
    texts = [" ".join(random.choice(words, random.integers(5, 25))) for _ in range(documents)]
    states = random.standard_normal((documents, 12))
    asked, directions, judged = [], [], ["query-id\tcorpus-id\tscore"]
    for query in range(queries):
        relevant = random.choice(documents, 2, replace=False)
        told = [random.choice(texts[one].split()) for one in relevant]
        asked.append(" ".join([*told, *random.choice(words, 2)]))
        directions.append(states[relevant].sum(axis=0) + 1.2 * random.standard_normal(12))
        judged += [f"q{query}\td{one}\t1" for one in relevant]
    for file, prefix, lines in (("corpus", "d", texts), ("queries", "q", asked)):
        records = [json.dumps({"_id": f"{prefix}{n}", "text": t}) for n, t in enumerate(lines)]
        (source / f"{file}.jsonl").write_text("\n".join(records) + "\n")
    (source / "qrels" / "test.tsv").write_text("\n".join(judged) + "\n")
    options = {"source": "beir", "path": str(source)}
    collection = prepare(open_collection(name, options), folder / name)
    for kind, array in (("documents", states), ("queries", np.asarray(directions))):
        (folder / f"{name}-{kind}").mkdir()
        np.save(folder / f"{name}-{kind}" / "states.npy", array.astype(np.float32))
    found = Files(
        name,
        collection,
        folder / f"{name}-documents",
        folder / f"{name}-queries",
        folder / f"bm25.{name}.parquet",
        folder / f"dense.{name}.parquet",
    )
    shard = np.load(found.documents / "states.npy")
    asked_states = np.load(found.queries / "states.npy")
    write_run(bm25(collection, depth=DEPTH, threads=1), collection, found.lexical_run)
    write_run(dense(shard, asked_states, depth=DEPTH), collection, found.dense_run)
    return found
