# The whole of skipbridge from a checkout. `make demo` and `make test` set up what they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SKIPPED := $(VENV)/skipped.txt
.PHONY: demo test test-full test-third test-parent mutations fast full checks forget-skipped nightly setup lint docs doctests unit laws engines java bench dist lock clean

setup: $(READY)
	$(if $(filter setup,$(MAKECMDGOALS)),@echo "ready in $(VENV); next: source $(VENV)/bin/activate && skipbridge doctor (or: make demo)")

# One line for each large download and each step; a failure of pip is one of the pipe.
$(READY): SHELL := /bin/bash
$(READY): .SHELLFLAGS := -o pipefail -c
$(READY): constraints.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "error ENVIRONMENT: $$($(PYTHON) --version) is too old -> make PYTHON=python3.11 (or newer)"; exit 2; }
	@test -x $(BIN)/python || { echo "creating $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "installing pinned packages into $(VENV) (800 MB, a few minutes the first time)"
	@$(BIN)/python -m pip install --progress-bar off --disable-pip-version-check --require-hashes -r constraints.txt \
		| sed -u -n -e 's/.*\(Downloading .* MB)\).*/\1/p' -e 's/^Installing collected packages.*/unpacking them (a minute or more)/p'
	@echo "installing skipbridge itself: pip fetches hatchling and builds it, silent for up to a minute"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

demo: setup
	$(BIN)/skipbridge demo

# Two processes share the tests; linters and doctests run beside them, because servers wait much of the time.
# `make test` has the tier fast, `make test-full` fast and full: see tests/README.md.
PYTEST := $(BIN)/python -m pytest -q -n 2
TESTS := tests
# Spark and Maven run for seconds: the JVM's second compiler would take more time than it saves.
test test-full test-third nightly: export SPARK_SUBMIT_OPTS = -XX:TieredStopAtLevel=1
test test-full test-third nightly: export MAVEN_OPTS = -XX:TieredStopAtLevel=1
# The last line tells what was skipped, how often and why.
test test-full test-third: export SKIPBRIDGE_SKIPPED = $(abspath $(SKIPPED))
TELL_SKIPPED = @echo "skipped tests: $$(sort $(SKIPPED) 2>/dev/null | uniq -c | sed 's/^ *//' | paste -s -d ';' - | sed 's/;/; /g' | grep . || echo none)"

test: forget-skipped setup
	@$(MAKE) --jobs=2 --output-sync=target --no-print-directory fast checks
	$(TELL_SKIPPED)

fast: setup
	$(PYTEST) --tier=fast $(TESTS)

checks: lint doctests

test-full: forget-skipped setup
	@$(MAKE) --jobs=2 --output-sync=target --no-print-directory full checks
	$(TELL_SKIPPED)

full: setup
	$(PYTEST) --tier=full $(TESTS)

# A third of what test-full adds to test. Modules are dealt by the seconds in tests/timings.json.
THIRD := 0
test-third: forget-skipped setup
	$(PYTEST) --tier=full --third=$(THIRD) $(TESTS)
	$(TELL_SKIPPED)

# Whether a failure is new: runs the case in the parent of HEAD, or in BASE. CASE is a pytest node or path.
BASE := HEAD^
test-parent: setup
	$(BIN)/python -m tests.parent $(BASE) $(CASE)

# Plants faults in a copy of the sources; the laws must catch each.
mutations: setup
	$(BIN)/python -m tests.mutations

forget-skipped:
	@rm -f $(SKIPPED)

lint: setup
	$(BIN)/ruff check bridge skipbridge_geo tests trino_plugin_gen hive_hooks
	$(BIN)/ruff format --check bridge skipbridge_geo tests trino_plugin_gen hive_hooks
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/mkdocs build --quiet --strict

# The documentation as a site, in build/site; --strict fails on a broken link or a page that is in no menu.
docs: setup
	$(BIN)/python docs/reference/generate.py
	$(BIN)/mkdocs build --strict

doctests: setup
	$(BIN)/python -m pytest -q -p no:xdist --doctest-modules bridge skipbridge_geo

unit: setup
	$(PYTEST) --tier=fast tests/unit tests/behaviour tests/storage tests/trino_plugin

laws: setup
	$(PYTEST) tests/laws tests/rules

engines: setup
	$(PYTEST) tests/engines

java: setup
	$(BIN)/python -m pytest -q tests/engines/test_java.py

# Each law and each differential test asked many times as often, all of Trino's suites, faults planted in the sources, and TPC-H and
# TPC-DS beside the stock connector. About four hours on two idle cores, half of it the differential tests: DIFFERENTIAL_ROUNDS=1 asks
# less, DIFFERENTIAL_ROUNDS=40 is 20,000 statements in Trino.
nightly: setup
	$(PYTEST) --tier=nightly $(TESTS)
	$(BIN)/python -m tests.mutations
	$(BIN)/python -m tests.benchmark tpch tpcds

bench: setup
	$(BIN)/python -m tests.benchmark

# What a release hands out: the wheel, the connector for each release of Trino, the jar for each of Hive, and SHA-256 sums.
dist: setup
	@rm -rf dist build/dist && mkdir -p dist build/dist
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	@for version in $$($(BIN)/skipbridge plugin versions); do \
		$(BIN)/skipbridge plugin build --trino-version $$version --to build/dist/trino-$$version && \
		cp LICENSE NOTICE build/dist/trino-$$version && \
		(cd build/dist/trino-$$version && $(abspath $(BIN))/python -m zipfile -c $(abspath dist)/skipbridge-trino-$$version.zip skipbridge LICENSE NOTICE) || exit 1; \
	done
	@for version in 2.3.10 4.0.1; do $(BIN)/skipbridge hive jar --hive-version $$version --to dist || exit 1; done
	@cd dist && sha256sum *.whl *.zip *.jar > SHA256SUMS && cat SHA256SUMS

# Writes constraints.txt anew from pyproject.toml: versions and hashes, no addresses.
lock:
	uv pip compile pyproject.toml --all-extras --generate-hashes --no-emit-index-url --universal \
		--python-version 3.11 --quiet --output-file constraints.txt

clean:
	rm -rf $(VENV) demo-out build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
