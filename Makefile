# Everything trueup needs is installed into .venv from constraints.txt; nothing else is touched.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
# Strict: only what the wheel would hold can be imported. Installed anew where files were added.
EDIT   := --no-build-isolation --config-settings editable_mode=strict --editable

SOURCES := $(shell find reference oracle kernels gates src -type f ! -name '*.pyc' | sort)

.PHONY: help demo dev test check format lint types docs bench clean

help:  ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# The file list is part of the stamp's name: adding or removing a file installs again.
LISTING := $(shell echo $(SOURCES) $$(cat pyproject.toml constraints.txt | cksum) | cksum | cut -d' ' -f1)

$(VENV)/core-$(LISTING): | $(BIN)/python
	$(PIP) setuptools
	$(PIP) $(EDIT) .
	@rm -f $(VENV)/core-* && touch $@

$(VENV)/dev-$(LISTING): | $(BIN)/python
	$(PIP) setuptools
	$(PIP) $(EDIT) '.[dev]'
	@rm -f $(VENV)/core-* $(VENV)/dev-* && touch $@ $(VENV)/core-$(LISTING)

demo: $(VENV)/core-$(LISTING)  ## set up the core, verify the shipped kernels, judge a real run, write a report
	$(BIN)/trueup doctor
	$(BIN)/trueup verify --backend host --report trueup-report
	$(BIN)/trueup gate fixtures/runs/cms_small --report trueup-report
	@echo "reports: trueup-report/verify.html and trueup-report/gate.html"

dev: $(VENV)/dev-$(LISTING)  ## install everything needed to work on trueup

test: dev  ## install what is missing and run all tests
	$(BIN)/pytest -n auto --dist worksteal

check: dev format lint types test  ## format, lint, types, tests: what must pass before a commit

format: dev
	$(BIN)/ruff format --check .

lint: dev
	$(BIN)/ruff check .

types: dev
	$(BIN)/mypy

docs: dev  ## write the tables in docs/ and the pages of docs/rules/ from the code
	for script in docs/*.py; do $(BIN)/python $$script || exit 1; done

bench: dev  ## separation of right and wrong kernels, and gate speed, as ratios in one run
	$(BIN)/python benchmarks/separation.py
	$(BIN)/python benchmarks/gate.py

clean:  ## remove what the targets made
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis trueup-report .trueup
