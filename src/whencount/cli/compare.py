"""`whencount compare`: are these runs different, and on which queries?"""

from __future__ import annotations

from pathlib import Path

import click

from whencount.cli.options import COUNT, FILE


@click.command(
    epilog="""\b
Examples:
  whencount compare before.trec after.trec --qrels qrels.tsv
  whencount compare a.trec b.trec c.trec --qrels qrels.tsv --measure recall@100 --out compared
  whencount compare a.trec b.trec --qrels qrels.tsv --json"""
)
@click.argument("runs", type=FILE, nargs=-1, required=True)
@click.option("--qrels", type=FILE, required=True, metavar="FILE", help="TREC or BEIR layout.")
@click.option("--measure", default="ndcg@10", show_default=True, help="ndcg@K or recall@K.")
@click.option("--draws", type=COUNT, default=10_000, show_default=True, help="Of the bootstrap.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the bootstrap.")
@click.option("--out", type=FILE, metavar="DIR", help="Write a page and tables there.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def compare(
    runs: tuple[Path, ...],
    qrels: Path,
    measure: str,
    draws: int,
    seed: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Compare TREC RUNS pairwise: paired bootstrap, Holm over all pairs, win/tie/loss per query.

    With --out: DIR/comparison.html, pairs.parquet and per_query.parquet.
    """
    import json

    from whencount.collections.qrels import read_qrels
    from whencount.comparing_runs import compare as library
    from whencount.errors import InputError
    from whencount.files import atomic_files

    names = [path.name for path in runs]
    if len(set(names)) < len(names):
        names = list(map(str, runs))
    if len(set(names)) < len(names):
        raise InputError("a run is named twice; name each once")
    found = library(
        dict(zip(names, runs, strict=True)),
        read_qrels(qrels),
        measure=measure,
        draws=draws,
        seed=seed,
    )
    if out is not None:
        import pandas as pd

        from whencount.comparing_runs.page import comparison_page

        table = pd.DataFrame(found.per_query.T, columns=names)
        table.insert(0, "query_id", found.query_ids)
        with atomic_files(out) as folder:
            (folder / "comparison.html").write_text(comparison_page(found), encoding="utf-8")
            found.pairs.to_parquet(folder / "pairs.parquet", index=False)
            table.to_parquet(folder / "per_query.parquet", index=False)
    if as_json:
        told = {
            "measure": found.measure,
            "queries": len(found.query_ids),
            "runs": found.means.to_dict("records"),
            "pairs": found.pairs.to_dict("records"),
        }
        click.echo(json.dumps(told, indent=1, default=float))
        return
    click.echo(f"{found.measure} on {len(found.query_ids):,} queries")
    for one in found.means.itertuples():
        click.echo(f"  {one.mean:.4f}  {one.run}  ({one.answered:,} queries answered)")
    for pair in found.pairs.to_dict("records"):
        click.echo(
            f"{pair['second']} less {pair['first']}: {pair['difference']:+.4f}"
            f" ({pair['low']:+.4f} to {pair['high']:+.4f}), p {pair['p']:.3g}, Holm"
            f" {pair['holm']:.3g}; win/tie/loss"
            f" {pair['wins']}/{pair['ties']}/{pair['losses']}"
        )
    if out is not None:
        click.echo(f"The page is {out / 'comparison.html'}", err=True)
