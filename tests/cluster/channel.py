"""A conda channel made of what is installed here, and a stand-in for the `conda` command over it.

    python tests/cluster/channel.py FOLDER       write the channel

Neither conda nor a public channel is needed. A package of the channel holds links to the files of
one installed distribution and depends on what that distribution declares, so an environment made
from it sees that and nothing else. Solving and installing are done by rattler, as pixi does.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import sys
import tarfile
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import Requirement

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
SITE_PACKAGES = f"lib/python{PYTHON}/site-packages"
# What conda calls a distribution.
CONDA_NAMES = {"matplotlib": "matplotlib-base"}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def build_channel(folder: Path) -> None:
    """Write a channel with every distribution that is installed beside this Python."""
    from rattler.index import index_fs

    packages = folder / "noarch"
    packages.mkdir(parents=True)
    version = ".".join(map(str, sys.version_info[:3]))
    base = Path(sys._base_executable)  # type: ignore[attr-defined]
    links = {"bin/python": str(base), "bin/python3": str(base)}
    home = f"home = {base.parent}\ninclude-system-site-packages = false\nversion = {version}\n"
    _package(packages, "python", version, [], links, {"pyvenv.cfg": home})
    for found in distributions():
        name = canonical(found.metadata["Name"])
        if name == "whencount":
            continue
        conda = CONDA_NAMES.get(name, name)
        needs = ["python", *(CONDA_NAMES.get(need, need) for need in _needs(found))]
        _package(packages, conda, found.version.partition("+")[0], needs, _links(found), {})
    asyncio.run(index_fs(folder))


def _needs(found: Distribution, extras: frozenset[str] = frozenset({""})) -> Iterator[str]:
    """Names of the installed distributions that one declares, those of extras it asks for too."""
    for text in found.requires or ():
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is not None and not any(marker.evaluate({"extra": extra}) for extra in extras):
            continue
        try:
            needed = distribution(requirement.name)
        except PackageNotFoundError:
            continue
        yield canonical(requirement.name)
        if requirement.extras:
            yield from _needs(needed, frozenset(requirement.extras))


def _links(found: Distribution) -> dict[str, str]:
    """The top-level files and folders of a distribution and its shared data, and where they are."""
    files = found.files or ()
    heads = {entry.parts[0] for entry in files} - {"..", "__pycache__"}
    here = Path(str(found.locate_file("")))
    links = {f"{SITE_PACKAGES}/{head}": str(here / head) for head in sorted(heads)}
    for entry in files:
        if entry.parts[:4] == ("..", "..", "..", "share"):
            links["/".join(entry.parts[3:])] = str(Path(str(entry.locate())).resolve())
    return links


def _package(
    folder: Path,
    name: str,
    version: str,
    depends: list[str],
    links: dict[str, str],
    files: dict[str, str],
) -> None:
    index = {
        "name": name,
        "version": version,
        "build": "0",
        "build_number": 0,
        "depends": depends,
        "subdir": "noarch",
        "noarch": "generic",
    }
    paths = [{"_path": path, "path_type": "softlink"} for path in links]
    paths += [{"_path": path, "path_type": "hardlink"} for path in files]
    contents = {
        "info/index.json": json.dumps(index),
        "info/paths.json": json.dumps({"paths": paths, "paths_version": 1}),
        "info/files": "".join(f"{path}\n" for path in [*links, *files]),
        **files,
    }
    with tarfile.open(folder / f"{name}-{version}-0.tar.bz2", "w:bz2") as archive:
        for path, text in contents.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
        for path, target in links.items():
            entry = tarfile.TarInfo(path)
            entry.type = tarfile.SYMTYPE
            entry.linkname = target
            archive.addfile(entry)


def specifications(environment: dict[str, Any]) -> list[str]:
    """What an environment file asks for; its pip section is asked of the channel too."""
    wanted = []
    for entry in environment["dependencies"]:
        if isinstance(entry, dict):
            for requirement in entry["pip"]:
                name, version = requirement.split("==")
                wanted.append(f"{CONDA_NAMES.get(name, name)}=={version}")
        else:
            wanted.append(entry)
    return wanted


async def create(channel: Path, file: Path, prefix: Path, cache: Path) -> None:
    """Solve an environment file against the channel and install it into `prefix`."""
    from rattler import install, solve

    environment = yaml.safe_load(file.read_text())
    records = await solve(
        [channel.as_uri()],
        specifications(environment),
        platforms=["noarch"],
    )
    await install(records, prefix, cache_dir=cache, show_progress=False)


def stand_in(folder: Path, channel: Path) -> Path:
    """Write a `conda` that does the few things Snakemake asks of it; returns its bin folder."""
    binaries = folder / "bin"
    binaries.mkdir(parents=True)
    (binaries / "activate").write_text('export CONDA_PREFIX="$1"\nexport PATH="$1/bin:$PATH"\n')
    conda = binaries / "conda"
    arguments = f"Path({str(folder)!r}), Path({str(channel)!r})"
    conda.write_text(
        f"#!{sys.executable}\nimport sys\nfrom pathlib import Path\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        f"from channel import main\nmain(sys.argv[1:], {arguments})\n"
    )
    conda.chmod(0o755)
    return binaries


def main(arguments: list[str], folder: Path, channel: Path) -> None:
    match arguments:
        case ["--version"]:
            print("conda 24.7.1")
        case ["info", "--json"]:
            print(json.dumps({"conda_prefix": str(folder), "platform": "linux-64"}))
        case ["config", "--get", "channel_priority", "--json"]:
            print(json.dumps({"get": {"channel_priority": "strict"}}))
        case ["clean", *_]:
            pass
        case ["env", "create", *options]:
            file = Path(options[options.index("--file") + 1])
            prefix = Path(options[options.index("--prefix") + 1])
            asyncio.run(create(channel, file, prefix, folder / "cache"))
            _end()
        case _:
            sys.exit(f"the stand-in for conda knows no {' '.join(arguments)}")


def _end() -> None:
    """End at once: threads of rattler that are still there when Python ends can crash it."""
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    build_channel(Path(sys.argv[1]))
    _end()
