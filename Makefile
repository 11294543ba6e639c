# `make` lists the targets. Every target makes the environment .venv from requirements.lock first,
# and only when the lock has changed.
SHELL := /bin/bash
PYTHON ?= python3
CORES ?= $(shell nproc 2>/dev/null || echo 2)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
STUDY := $(BIN)/snakemake --cores $(CORES) --quiet reason host --rerun-incomplete --show-failed-logs
# Another configuration: make study CONFIG=my.yaml
OTHER := $(if $(CONFIG),--configfile $(CONFIG))

.DEFAULT_GOAL := help
.PHONY: help setup study report site pages experts latent-terms reversal learned-sparse late-interaction economics transfer fusion test test-slow test-cluster test-faults lint format types bench dry-run-full lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## create .venv from requirements.lock

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed; name one with PYTHON=python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@echo "Installing what requirements.lock names into $(VENV): about 1 GB, a few minutes ..."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

study: $(READY) ## run the study of config.yaml (or CONFIG=my.yaml), write its report
	$(STUDY) study $(OTHER)

pages: $(READY) ## run the study of key-value pages alone (setting B)
	$(STUDY) pages $(OTHER) --config transfer=false

experts: $(READY) ## run the study of expert routing alone (setting C)
	$(STUDY) experts $(OTHER) --config transfer=false

economics: $(READY) ## measure what the index of each representation costs
	$(STUDY) economics $(OTHER)

latent-terms: $(READY) ## run the study of latent terms: sparse codes of tokens as terms
	$(STUDY) latent_terms $(OTHER) --config transfer=false

reversal: $(READY) ## compare BM25 with the inner product on latent terms and SPLADE-like vectors
	$(STUDY) reversal $(OTHER) --config transfer=false

learned-sparse: $(READY) ## train small SPLADE models, with and without FLOPS, and compare
	$(STUDY) learned_sparse $(OTHER) --config transfer=false

late-interaction: $(READY) ## token vectors and MaxSim, exactly and through an index
	$(STUDY) late_interaction $(OTHER) --config transfer=false

transfer: $(READY) ## freeze predictors of retrieval, put them to the test on the other settings
	$(STUDY) transfer $(OTHER)

fusion: $(READY) ## a dense and a lexical ranking made one by every rule: which helps where
	$(STUDY) fusion $(OTHER)

# Where every table is what its manifest says, only pages are drawn: a folder of results that was
# copied from elsewhere has lost the times that Snakemake goes by.
PAGES_ALONE := --allowed-rules report retrieval_report hypotheses_report part_pages site

report: $(READY) ## write the report again, making first what is missing
	@if $(BIN)/whencount verify --quick --source --without-pages \
	    --configuration $(or $(CONFIG),config.yaml) > /dev/null 2>&1 \
	  && $(STUDY) report $(OTHER) $(PAGES_ALONE) --dry-run > /dev/null 2>&1; \
	then $(STUDY) report $(OTHER) $(PAGES_ALONE); \
	else $(STUDY) report $(OTHER); fi

site: $(READY) ## link every report that stands on one page, with an explorer of rows
	$(STUDY) site $(OTHER)

test: $(READY) ## all tests that CI runs, a small real study among them
	$(BIN)/python -m pytest -m "not slow and not cluster and not faults"

test-slow: $(READY) ## the tests that take minutes
	$(BIN)/python -m pytest -m slow

test-cluster: $(READY) ## the profiles against a real Slurm on this machine (root and apt; 4 minutes)
	$(BIN)/python -m pytest -m cluster tests/cluster

test-faults: $(READY) ## break a small study in every way and let it recover (an hour)
	$(BIN)/python -m pytest -m faults tests/faults

lint: $(READY) ## format, lint, types, and the checks of the workflow
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/snakefmt --check Snakefile workflow tests/cluster/Snakefile
	$(BIN)/snakemake --lint

format: $(READY) ## put the sources in the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/snakefmt Snakefile workflow tests/cluster/Snakefile

dry-run-full: $(READY) ## expand the published grid without running it
	$(BIN)/snakemake --configfile configs/full.yaml --dry-run --quiet all

bench: $(READY) ## measure the engine against its peers, write docs/performance.md (8 GB, 30 minutes)
	$(BIN)/python -m benchmarks.run_all --million

lock: ## resolve requirements.in and requirements-alone.in anew and write requirements.lock
	rm -rf .venv.lock
	$(PYTHON) -m venv .venv.lock
	.venv.lock/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.in
	.venv.lock/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements-alone.in
	{ echo "# Exact versions, made by 'make lock' from requirements.in and requirements-alone.in: complete, so they are"; \
	  echo "# installed with --no-deps."; \
	  .venv.lock/bin/python -m pip freeze --all --exclude pip | sed 's/+cpu$$//'; } > requirements.lock
	rm -rf .venv.lock

clean: ## remove everything that the study wrote (not .venv)
	rm -rf results/* reports/*.html reports/*.js .snakemake
	git checkout -- results reports
