# Everything a clone needs: `make demo` shows what the library does, `make test` proves it.
PYTHON ?= python3
WORKERS ?= auto
PROFILE ?= standard
BIN := .venv/bin
STAMP := .venv/.installed
SITE := docs/_build docs/api docs/auto_examples docs/sg_execution_times.rst
# Small matrices: more BLAS threads than processes only get in each other's way.
export OMP_NUM_THREADS ?= 1

.PHONY: help install demo test test-all lint format bench mutation docs clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 12

install: $(STAMP)  ## make .venv from the project's files

# Debian splits ensurepip off into python3-venv; where it is absent, the pip at hand fills in.
$(STAMP): pyproject.toml
	test -x $(BIN)/pip || $(PYTHON) -m venv .venv || { \
	    rm -rf .venv && $(PYTHON) -m venv --without-pip .venv && \
	    $(PYTHON) -m pip --python $(BIN)/python install pip; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test,report]'
	touch $@

demo: install  ## co-cluster four matrices, print the blocks, write reports to demo-output/
	$(BIN)/python -m ccot.demo --out demo-output

test: lint  ## lint, then every test and docstring example but the slow ones
	$(BIN)/python -m pytest -n $(WORKERS) -m "not slow"

test-all: lint docs  ## lint and docs, then everything, with many more random examples
	HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -n $(WORKERS)

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

$(STAMP)-mutation: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[mutation]'
	touch $@

mutation: $(STAMP)-mutation  ## mutants of the numeric core, and which of them the tests notice; hours
	$(BIN)/python -m benchmarks.mutation

$(STAMP)-docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	touch $@

# From scratch: what an example prints on the site is what today's library prints.
docs: $(STAMP)-docs  ## build the site into docs/_build/html; a warning is a failure
	rm -rf $(SITE)
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

clean:  ## remove what the other targets made
	rm -rf .venv build dist demo-output .pytest_cache .ruff_cache .hypothesis .import_linter_cache \
	    $(SITE)
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
