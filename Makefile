# The one way to set up, check and show this project. Continuous integration calls the same targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:

VENV := .venv
BIN := $(VENV)/bin
# Touched after a complete installation, so that an interrupted one is repeated.
STAMP := $(VENV)/.installed
# Passed to every pytest run, for instance PYTEST_ARGS='-n 2' or PYTEST_ARGS='-k ask -x'.
PYTEST_ARGS ?=
# Passed to the benchmark, for instance BENCH_ARGS=--quick or BENCH_ARGS='--only latency'.
BENCH_ARGS ?=
# Passed to a trial, for instance TRIAL_ARGS='--rounds 2 --seed 7'.
TRIAL_ARGS ?=
# What the demo's ask carries back; given through the environment so that no shell reads it.
TOKEN ?=
export TOKEN

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 22

.PHONY: setup
setup: $(STAMP) ## make .venv with everything the project needs (again only when pyproject.toml changed)

$(STAMP): pyproject.toml
	@python="$$(.ci/find-python)"; \
	echo "setup: Python $$("$$python" -c 'import platform; print(platform.python_version())') at $$python"; \
	"$$python" -m venv $(VENV)
	@echo "setup: installing into $(VENV)"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[dev,speed]'
	@touch $@
	@echo "setup: done; $(BIN)/intercomd and $(BIN)/intercomctl work"

.PHONY: demo
demo: setup ## two mains and a child talk through a broker of their own [TOKEN=text]
	@$(BIN)/python examples/demo.py --token "$$TOKEN"

.PHONY: bench
bench: setup ## the measured goals against floors, written to bench/RESULTS.md [BENCH_ARGS=--quick]
	@$(BIN)/python -m bench $(BENCH_ARGS)

.PHONY: inspector
inspector: setup ## list and call the agents' tool with the MCP inspector from npm (needs npx and, once, a network)
	@$(BIN)/python -m tests.trials.inspector $(TRIAL_ARGS)

.PHONY: test
test: lint types imports pytest ## everything below, as continuous integration runs it

.PHONY: lint
lint: setup ## ruff with every rule on, less those with a written reason
	@echo "== ruff"
	@$(BIN)/ruff check .

.PHONY: types
types: setup ## mypy --strict
	@echo "== mypy"
	@$(BIN)/mypy

.PHONY: imports
imports: setup ## who may import whom (.importlinter)
	@echo "== lint-imports"
	@$(BIN)/lint-imports --no-logo

.PHONY: pytest
pytest: setup ## every test folder
	@echo "== pytest tests $(PYTEST_ARGS)"
	@$(BIN)/python -m pytest tests $(PYTEST_ARGS)

.PHONY: unit stateful conformance architecture integration
unit: setup ## one module at a time, no sockets
stateful: setup ## router and connections as state machines
conformance: setup ## the wire vectors, on the library and on a live broker
architecture: setup ## the walls, the budgets and the documents
integration: setup ## real processes
unit stateful conformance architecture integration:
	@echo "== pytest tests/$@ $(PYTEST_ARGS)"
	@$(BIN)/python -m pytest tests/$@ $(PYTEST_ARGS)

.PHONY: storm idle vanishing environment verdicts load mutation crash
storm: setup ## a hundred starters at once, twenty times, with kills and outside witnesses [TRIAL_ARGS=--rounds 2]
idle: setup ## clients that connect while their broker leaves
vanishing: setup ## files that vanish under a living broker
environment: setup ## what surrounds a client, and the broker that it starts
verdicts: setup ## every line of the verdict table, for real
load: setup ## greedy, broken and hostile clients against a live broker [TRIAL_ARGS='--only soak']
mutation: setup ## a million mutated frames against a live broker [TRIAL_ARGS='--frames 9999']
crash: setup ## sessions and brokers killed 10,000 times each, and their disks full
storm idle vanishing environment verdicts load mutation crash:
	@$(BIN)/python -m tests.trials.$@ $(TRIAL_ARGS)

.PHONY: bundle
bundle: setup ## write remote/remote_cli.py, the one file that runs on other devices
	@$(BIN)/python -m remote.bundle

.PHONY: devices
devices: setup ## the failure tables of other devices and the cut matrix, over real ssh connections
	@$(BIN)/python -m tests.integration.devices $(TRIAL_ARGS)

.PHONY: clean-clone
clean-clone: setup ## make demo and make test on a fresh clone, in a container with only python3, venv, git and make
	@$(BIN)/python -m tests.integration.clean_clone $(CLEAN_CLONE_ARGS)

.PHONY: clean
clean: ## remove .venv and every cache
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
