"""`whencount advise`: should this index use collection statistics?"""

from __future__ import annotations

from pathlib import Path

import click

from whencount.cli.options import COUNT, FILE, warn


@click.command(
    epilog="""\b
Examples:
  whencount advise --documents docs.jsonl
  whencount advise --documents docs.jsonl --queries queries.jsonl --reference dense.trec
  whencount advise --documents docs.jsonl --queries queries.jsonl --reference dense.trec \\
      --reference-text corpus.jsonl queries-text.jsonl --out advice
  whencount advise --documents docs.jsonl --queries queries.jsonl --reference dense.trec --json"""
)
@click.option(
    "--documents",
    type=FILE,
    required=True,
    metavar="FILE",
    help="Vectors of documents: JSON lines, .npz, Parquet, ... (docs/formats.md)",
)
@click.option("--queries", type=FILE, metavar="FILE", help="Vectors of queries.")
@click.option(
    "--reference",
    "runs",
    type=FILE,
    multiple=True,
    metavar="RUN",
    help="TREC run whose first ten documents stand in for relevance; may be given again.",
)
@click.option(
    "--reference-text",
    "texts",
    type=(FILE, FILE),
    metavar="CORPUS QUERIES",
    help="JSON lines of texts; BM25 over their words is a reference.",
)
@click.option("--document-budget", type=COUNT, metavar="N", help="Keep each document's N largest.")
@click.option("--query-budget", type=COUNT, metavar="N", help="Keep each query's N largest.")
@click.option("--draws", type=COUNT, default=2000, show_default=True, help="Of the bootstrap.")
@click.option(
    "--seed",
    type=click.IntRange(0, 2**31 - 1),
    default=0,
    show_default=True,
    help="Of the bootstrap.",
)
@click.option("--threads", type=COUNT, metavar="N", help="Of the search.  [default: all]")
@click.option(
    "--out",
    type=FILE,
    metavar="DIR",
    help="Write advice.html, advice.json and estimates.parquet there.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def advise(
    documents: Path,
    queries: Path | None,
    runs: tuple[Path, ...],
    texts: tuple[Path, Path] | None,
    document_budget: int | None,
    query_budget: int | None,
    draws: int,
    seed: int,
    threads: int | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Say which of IDF, saturation and length normalisation an index should use, without labels.

    Without queries the index alone speaks, of saturation. With queries and a reference the eight
    configurations are run, and the reference's first ten documents judge them; two references of
    different kinds say more than one. `whencount bake` then makes the index.
    """
    import json
    from contextlib import ExitStack
    from tempfile import TemporaryDirectory

    from whencount.advising import advise as library
    from whencount.advising.page import advice_page, headline
    from whencount.advising.references import from_run, from_texts
    from whencount.errors import InputError
    from whencount.files import atomic_files, open_binary
    from whencount.reading import read_collection
    from whencount.wording import capital

    if (runs or texts) and queries is None:
        raise InputError("a reference ranks documents for queries; name them with --queries")
    names = [path.name for path in runs]
    if len(set(names)) < len(names):
        raise InputError("two references have the same file name; rename one, so that they differ")
    for path in (*runs, *(texts or ())):
        # A wrong name is told now, not after the documents are read.
        open_binary(path).close()
    with ExitStack() as stack:
        folder = None if out is None else stack.enter_context(atomic_files(out))
        scratch = Path(stack.enter_context(TemporaryDirectory(prefix="whencount-")))
        collection = read_collection(
            documents,
            queries,
            folder=scratch / "vectors",
            document_budget=document_budget,
            query_budget=query_budget,
        )
        stored, asked = collection.documents, collection.queries
        references = {}
        if asked is not None:
            references = {path.name: from_run(path, asked.ids, stored.ids) for path in runs}
            if texts is not None:
                found = from_texts(*texts, asked.ids, stored.ids, threads)
                references["text BM25"] = found
        if asked is not None and not references:
            warn(
                "without a reference the queries are not used; give --reference or --reference-text"
            )
        advice = library(
            stored, asked, references, draws=draws, seed=seed, threads=threads, scratch=scratch
        )
        told = advice.as_json()
        if folder is not None:
            (folder / "advice.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
            page = advice_page(advice, documents.name)
            (folder / "advice.html").write_text(page, encoding="utf-8")
            advice.table().to_parquet(folder / "estimates.parquet", index=False)
    if as_json:
        click.echo(json.dumps(told, indent=1))
        return
    click.echo(headline(advice))
    for sentence in advice.reasons:
        click.echo(f"  - {capital(sentence)}.")
    for sentence in advice.warnings:
        click.echo(f"  ! {capital(sentence)}.")
    if out is not None:
        click.echo(f"The page is {out / 'advice.html'}", err=True)
