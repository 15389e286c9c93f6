# Two commands set up, one runs the main job, one the tests; each target is one line of what it does.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VENV ?= .venv
PYTHON ?= python3.11
BIN := $(VENV)/bin
RECIPE ?= images/recipes/cpu.yaml
WORK ?= .tic
IMAGE_FLAGS ?=

.PHONY: help setup image test check unit clean bench mutants

help: ## what each target does
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/ready ## install the tool and its development tools into .venv

$(VENV)/ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[build,dev]'
	touch $@

image: setup ## build, probe, validate and deliver RECIPE (default: the CPU recipe on real upstream code)
	scripts/make-image "$(RECIPE)" "$(WORK)" $(IMAGE_FLAGS)

check: setup ## format, lint, types, import rules, generated documentation
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/make-docs --check

unit: setup ## the tests that need no engine
	$(BIN)/pytest tests/unit

test: check ## everything: checks, unit, engine and mini-recipe tests, scenarios
	scripts/test

bench: setup ## costs, as ratios in one run (not part of CI)
	scripts/bench

mutants: setup ## planted faults must turn a scenario red (not part of CI)
	$(BIN)/python scripts/mutants

clean: ## stop the demo forge and delete the work folder (the engine: scripts/engine down, or purge)
	-scripts/demo-forge down
	-$(BIN)/tic-manifest clean --all --work "$(WORK)"
