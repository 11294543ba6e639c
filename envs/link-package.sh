#!/bin/sh
# Run by Snakemake in a new conda environment: whencount itself goes in as a link to this clone.
# No build, no download; the clone must stay where every machine sees it.
set -eu
source="${WHENCOUNT_SOURCE:-$PWD}"
if [ ! -f "$source/src/whencount/__init__.py" ]; then
  echo "There is no whencount in $source: start Snakemake in its folder, or set WHENCOUNT_SOURCE." >&2
  exit 1
fi
packages="$("$CONDA_PREFIX/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
echo "$source/src" > "$packages/whencount.pth"
cat > "$CONDA_PREFIX/bin/whencount" <<COMMAND
#!$CONDA_PREFIX/bin/python
from whencount.cli import main

main()
COMMAND
chmod +x "$CONDA_PREFIX/bin/whencount"
"$CONDA_PREFIX/bin/whencount" --version
