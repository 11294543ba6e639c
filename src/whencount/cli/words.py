"""`whencount words`: word counts of texts as vectors."""

from __future__ import annotations

from pathlib import Path

import click

from whencount.cli.options import FILE


@click.command(
    epilog="""\b
Examples:
  whencount words scifact --out vectors
  whencount advise --documents vectors/documents.jsonl --queries vectors/queries.jsonl"""
)
@click.argument("folder", type=FILE)
@click.option("--out", type=FILE, required=True, metavar="DIR", help="Folder to write to.")
def words(folder: Path, out: Path) -> None:
    """Count the words of FOLDER/corpus.jsonl and FOLDER/queries.jsonl (a BEIR folder).

    Writes DIR/documents.jsonl and DIR/queries.jsonl, lines {"id": ..., "vector": {word: count}}:
    the plainest sparse vectors there are, for whoever has none at hand.
    """
    from functools import partial

    import numpy as np

    from whencount.advising.references import TextFiles
    from whencount.exporting.formats import Baked, Names, json_lines
    from whencount.files import atomic_files
    from whencount.references.lexical import count_words

    texts = TextFiles(folder / "corpus.jsonl", folder / "queries.jsonl")
    documents, queries, vocabulary = count_words(texts)
    documents.ids[:] = np.array(texts.ids, dtype=object)
    queries.ids[:] = np.array([query.id for query in texts.queries], dtype=object)
    names = Names(np.array(vocabulary, dtype=object))
    with atomic_files(out) as place:
        for name, vectors in (("documents", documents), ("queries", queries)):
            blocks = partial(iter, [vectors])
            baked = Baked(blocks, names, len(vectors), vectors.nonzeros, True)
            json_lines.write(place / f"{name}.jsonl", baked)
    click.echo(
        f"{out}: {len(documents):,} documents, {len(queries):,} queries, {len(vocabulary):,} words",
        err=True,
    )
