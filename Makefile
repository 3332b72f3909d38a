# Everything a clone needs: `make demo` shows what the library does, `make test` proves it.
PYTHON ?= python3
WORKERS ?= auto
PROFILE ?= standard
BIN := .venv/bin
STAMP := .venv/.installed
LOWEST := .venv-lowest/.installed
PIP := python -m pip --quiet --disable-pip-version-check
# PyTorch is pinned in pyproject.toml but not locked: its builds for the CPU and for CUDA share a
# version, not a hash, and need other packages. What both need is in the locks.
TORCH := $(shell grep -o 'torch==[0-9.]*' pyproject.toml)
# An environment that is there serves the demo too.
DEMO := $(if $(wildcard $(STAMP)),.venv,.venv-demo)
CORE := array-api-compat joblib numpy POT rich scikit-learn scipy threadpoolctl typer
SITE := docs/_build docs/api docs/auto_examples docs/sg_execution_times.rst
# Small matrices: more BLAS threads than processes only get in each other's way.
export OMP_NUM_THREADS ?= 1

.PHONY: help install demo test test-all test-lowest lint format bench mutation docs lock audit release-check track clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 12

install: $(STAMP)  ## make .venv from requirements/locked.txt

$(STAMP): requirements/locked.txt
$(LOWEST): requirements/lowest.txt

# Debian splits ensurepip off into python3-venv; where it is absent, the pip at hand fills in.
# Wheels only: what a source distribution needs to be built, no lock holds.
$(STAMP) $(LOWEST): pyproject.toml
	test -x $(@D)/bin/pip || $(PYTHON) -m venv $(@D) || { \
	    rm -rf $(@D) && $(PYTHON) -m venv --without-pip $(@D) && \
	    $(PYTHON) -m pip --python $(@D)/bin/python install pip; }
	$(@D)/bin/$(PIP) install --require-hashes --only-binary :all: -r $(filter requirements/%,$^)
	$(@D)/bin/$(PIP) install $(TORCH)
	$(@D)/bin/$(PIP) install --no-deps --no-build-isolation -e .
	touch $@

demo: $(DEMO)/.installed  ## co-cluster seven matrices, print the blocks, write reports to demo-output/
	PYTHONPATH=src $(DEMO)/bin/python -m ccot demo --out demo-output

# The demo alone needs neither PyTorch nor linters: what the package itself depends on, as locked.
.venv-demo/.installed: requirements/locked.txt pyproject.toml
	test -x $(@D)/bin/pip || $(PYTHON) -m venv $(@D) || { \
	    rm -rf $(@D) && $(PYTHON) -m venv --without-pip $(@D) && \
	    $(PYTHON) -m pip --python $(@D)/bin/python install pip; }
	grep -oE '^[A-Za-z0-9._-]+==[^ ;]+' requirements/locked.txt > $(@D)/constraints.txt
	$(@D)/bin/$(PIP) install --only-binary :all: -c $(@D)/constraints.txt $(CORE)
	touch $@

test: lint  ## lint, then every test and docstring example but the slow ones
	$(BIN)/python -m pytest -n $(WORKERS) -m "not slow"

test-all: lint docs  ## lint and docs, then everything, with many more random examples
	HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -n $(WORKERS)

test-lowest: $(LOWEST)  ## make test's tests with the lowest versions that pyproject.toml allows
	.venv-lowest/bin/python -m pytest -n $(WORKERS) -m "not slow"

lint: install  ## style, types and layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright
	$(BIN)/lint-imports

format: install  ## let ruff rewrite what it can
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: install  ## time, memory and error beside the rivals; renders docs/benchmarks.md
	$(BIN)/python -m benchmarks.run --profile $(PROFILE)

mutation: install  ## mutants of the numeric core, and which of them the tests notice; hours
	$(BIN)/python -m benchmarks.mutation

# From scratch: what an example prints on the site is what today's library prints.
docs: install  ## build the site into docs/_build/html; a warning is a failure
	rm -rf $(SITE)
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

LOCK := uv pip compile --quiet --upgrade --universal --python-version 3.11 --fork-strategy fewest \
    --prerelease disallow --generate-hashes --only-binary :all: --no-emit-package torch \
    --custom-compile-command 'make lock' pyproject.toml

lock: install  ## resolve the files in requirements/ anew
	$(BIN)/$(LOCK) --output-file requirements/locked.txt \
	    $(addprefix --extra ,test report docs mutation lock)
	$(BIN)/$(LOCK) --output-file requirements/lowest.txt --resolution lowest-direct \
	    $(addprefix --extra ,dask io paper report serve tables zarr test)

	$(BIN)/$(LOCK) --output-file requirements/serve.txt --extra serve
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --fork-strategy fewest \
	    --prerelease disallow --generate-hashes --only-binary :all: \
	    --custom-compile-command 'make lock' --group release --output-file requirements/release.txt

audit: install  ## known vulnerabilities of what is locked; asks PyPI's advisories
	$(BIN)/pip-audit --strict --disable-pip --require-hashes -r requirements/locked.txt
	$(BIN)/pip-audit --strict --disable-pip --require-hashes -r requirements/serve.txt
	$(BIN)/pip-audit --strict --disable-pip --require-hashes -r requirements/release.txt
	echo $(TORCH) | $(BIN)/pip-audit --strict --disable-pip --no-deps -r /dev/stdin

release-check: install  ## build a release twice, inspect, install and use it; leaves it in dist/
	$(BIN)/python -m tools.metadata --check
	$(BIN)/python -m tools.release_check --tests $(BIN)/python -- -n $(WORKERS)

track: install  ## time the operations that matter on this commit (benchmarks/operations)
	$(BIN)/python -m benchmarks.track

clean:  ## remove what the other targets made
	rm -rf .venv .venv-demo .venv-lowest build dist demo-output .pytest_cache .ruff_cache .hypothesis .import_linter_cache \
	    $(SITE)
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
