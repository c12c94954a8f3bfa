SHELL := /bin/bash
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
EXPERIMENT ?= experiments/supply_chain.yaml
# Two processes of one thread each: on two cores, more threads wait for each other.
WORKERS ?= 2
TORCH := torch==2.13.0
# Games: chess and rlcard have no wheel at all and are pure Python, Box2D and pymunk have none for aarch64.
NO_WHEELS := chess|box2d|pymunk|rlcard
# What looks like a secret and is none: addresses in a docstring and a test, the name of a mark.
NO_SECRETS := USER:PASSWORD@HOST nobody:hidden@ serving-secret
PACKAGES := assembly envs policies rewards runtime serving telemetry trainers
# The first Python that is new enough and can make a virtual environment; constraints.txt was made with 3.11.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	$$p -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)

export OMP_NUM_THREADS ?= 1
export RAY_USAGE_STATS_ENABLED := 0

.PHONY: help install run test test-slow lint bench docs audit wheels clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /\1|/' | \
		while IFS='|' read -r name what; do printf '  make %-10s %s\n' "$$name" "$$what"; done

$(VENV)/.stamp: pyproject.toml constraints.txt
	@[ -n "$(PYTHON)" ] || { echo "Python 3.11 or newer with its venv module is needed: apt install python3 python3-venv" >&2; exit 3; }
	@echo 'installing into $(VENV): a few minutes the first time, then only when pyproject.toml or constraints.txt change'
	[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -qq --disable-pip-version-check --no-input -c constraints.txt $(TORCH) -e '.[dev,bench]'
	$(BIN)/python -m pip install -qq --disable-pip-version-check --no-input -c constraints.txt --no-deps xgrammar apache-tvm-ffi
	@touch $@

install: $(VENV)/.stamp ## make .venv with the exact versions of constraints.txt

run: install ## train, evaluate and export the supply-chain team (EXPERIMENT=file.yaml for another)
	$(BIN)/python -m trainers.run $(EXPERIMENT)

lint: install ## style, layers, dependencies, weaknesses, types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports
	$(BIN)/deptry .
	$(BIN)/bandit -q -r $(PACKAGES) -t B613,B614
	$(BIN)/pyright --pythonpath $(BIN)/python

# By file, so that a module's servers start once: pytest 9.2 names tests in a way that pytest-xdist's groups do not see.
test: lint ## lint, then every test that is not slow
	$(BIN)/pytest -n $(WORKERS) --dist loadfile -m 'not slow'

test-slow: install ## the tests that take minutes
	@command -v chromium >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } || \
		{ echo 'the tests of what is looked at need chromium: apt install chromium' >&2; exit 3; }
	$(BIN)/pytest -m slow --timeout 1800

bench: install ## speed and learning against plain RLlib and a hand-written loop
	$(BIN)/python -m bench

docs: install ## the documentation as a site, in build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

audit: install ## secrets in tracked files, known weaknesses of the pinned packages (needs PyPI itself)
	git ls-files -z -- ':!constraints.txt' ':!*.jsonl' ':!*.png' ':!docs/*.json' | \
		xargs -0 $(BIN)/detect-secrets-hook --no-verify $(foreach line,$(NO_SECRETS),--exclude-lines '$(line)')
	$(BIN)/pip-audit --strict --disable-pip --no-deps -r constraints.txt

wheels: ## whether every pinned package has wheels for x86_64 and aarch64, but those of games that have none (needs an index)
	@for machine in x86_64 aarch64; do \
		echo "$$machine"; \
		$(BIN)/python -m pip install --dry-run -q --disable-pip-version-check --ignore-installed --no-deps --target build/none \
			--only-binary :all: --python-version 3.11 $$(printf -- "--platform %s_$$machine " \
			manylinux_2_35 manylinux_2_34 manylinux_2_31 manylinux_2_28 manylinux_2_27 manylinux_2_26 manylinux_2_24 manylinux_2_17 \
			manylinux2014 manylinux2010 manylinux1 linux) -r <(grep -viE '^($(NO_WHEELS))==' constraints.txt) || exit 3; \
	done

clean: ## remove the virtual environment and the caches, never runs/
	rm -rf $(VENV) .pytest_cache .ruff_cache .import_linter_cache .hypothesis build *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
