"""`whencount import`: an archive that `whencount export` wrote, unpacked with care."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(
    "import",
    epilog="""\b
Examples:
  whencount import study.tar.zst --out study
  cd study && whencount verify""",
)
@click.argument("archive", type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, metavar="DIR", help="Folder to make."
)
@click.option("--sha256", metavar="HEX", help="Refuse an archive that has another.")
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=64,
    show_default=True,
    metavar="GB",
    help="Refuse an archive that would unpack to more.",
)
def import_(archive: Path, out: Path, sha256: str | None, limit: int) -> None:
    """Unpack ARCHIVE into a new folder: all of it, checked, or nothing.

    Refused are names that lead elsewhere or are hidden, links, devices, two members of one name,
    members that its list does not have or gives another size or checksum, and more bytes than the
    limit. Nothing is fetched.
    """
    from whencount.provenance.archive import read_archive

    members = read_archive(archive, out, limit=limit * 10**9, sha256=sha256)
    size = sum(member.size for member in members)
    click.echo(f"{out}: {len(members):,} files, {size / 1e6:,.1f} MB, all as the archive says")
