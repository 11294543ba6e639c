#!/bin/sh
# Run by Snakemake in a new conda environment: whencount itself goes in as a link to this clone.
# No build, no download; the clone must stay where every machine sees it.
set -eu
source="${WHENCOUNT_SOURCE:-$PWD}"
if [ ! -f "$source/src/whencount/__init__.py" ]; then
  echo "There is no whencount in $source: start Snakemake in its folder, or set WHENCOUNT_SOURCE." >&2
  exit 1
fi
"$CONDA_PREFIX/bin/python" - "$source" "$CONDA_PREFIX" <<'LINK'
import sys
import sysconfig
import tomllib
from pathlib import Path

source, prefix = map(Path, sys.argv[1:])
packages = Path(sysconfig.get_path("purelib"))
(packages / "whencount.pth").write_text(f"{source / 'src'}\n")
version = tomllib.loads((source / "pyproject.toml").read_text())["project"]["version"]
about = packages / f"whencount-{version}.dist-info"
about.mkdir(exist_ok=True)
(about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: whencount\nVersion: {version}\n")
(about / "INSTALLER").write_text("envs/link-package.sh\n")
command = prefix / "bin" / "whencount"
command.write_text(
    f"#!{prefix / 'bin' / 'python'}\nfrom whencount.cli import main\n\nmain()\n"
)
command.chmod(0o755)
LINK
"$CONDA_PREFIX/bin/whencount" --version
