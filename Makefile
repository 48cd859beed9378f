# The whole of skipbridge from a checkout. `make demo` and `make test` set up what they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SKIPPED := $(VENV)/skipped.txt
JDK17 = $$($(BIN)/python -c "from bridge.servers.java import find_jdk; print(find_jdk(17, 24).home)")
JDK25 = $$($(BIN)/python -c "from bridge.servers.java import find_jdk; print(find_jdk(25).home)")

.PHONY: demo test forget-skipped nightly setup lint docs unit laws engines engines-trino engines-others java bench lock clean

setup: $(READY)

$(READY): constraints.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "error ENVIRONMENT: $$($(PYTHON) --version) is too old -> make PYTHON=python3.11 (or newer)"; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing pinned packages into $(VENV) (a few minutes the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r constraints.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

demo: setup
	$(BIN)/skipbridge demo

# Two parts at a time, because servers wait much of the time, the longest first; each part is printed when it ends.
# The last line tells what was skipped, how often and why.
test: export SKIPBRIDGE_SKIPPED = $(abspath $(SKIPPED))
# Spark and Maven run for seconds: the JVM's second compiler would take more time than it saves.
test: export SPARK_SUBMIT_OPTS = -XX:TieredStopAtLevel=1
test: export MAVEN_OPTS = -XX:TieredStopAtLevel=1
test: forget-skipped lint
	@$(MAKE) --jobs=2 --output-sync=target --no-print-directory engines-trino engines-others unit laws java
	@echo "skipped tests: $$(sort $(SKIPPED) 2>/dev/null | uniq -c | sed 's/^ *//' | paste -s -d ';' - | sed 's/;/; /g' | grep . || echo none)"

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

unit: setup
	$(BIN)/pytest -q tests/unit tests/behaviour tests/storage tests/trino_plugin
	$(BIN)/pytest -q --doctest-modules bridge skipbridge_geo

laws: setup
	$(BIN)/pytest -q tests/laws tests/rules

engines: engines-trino engines-others

# Modules that share the Trino server, and the rest.
TRINO_TESTS := $(wildcard tests/engines/test_trino*.py tests/engines/test_hudi*.py) tests/engines/test_differential_trino.py
engines-trino: setup
	$(BIN)/pytest -q $(TRINO_TESTS)

engines-others: setup
	$(BIN)/pytest -q $(filter-out $(TRINO_TESTS),$(wildcard tests/engines/test_*.py))

java: setup
	home=$(JDK25) && cd trino_plugin_gen/template && JAVA_HOME=$$home mvn -q -B package
	home=$(JDK25) && cd trino_plugin_gen/template && JAVA_HOME=$$home mvn -q -B -f hudi/pom.xml test
	home=$(JDK17) && cd hive_hooks/java && for hive in 2.3.10 3.1.3; do \
		JAVA_HOME=$$home mvn -q -B -Dhive.version=$$hive -Dmaven.test.skip=true clean compile || exit 1; done
	home=$(JDK17) && cd hive_hooks/java && JAVA_HOME=$$home mvn -q -B clean test

# What takes longer than `make test` may: each law and each differential test asked many times as often,
# all of Trino's suites, and TPC-H and TPC-DS beside the stock connector. About four hours on two idle
# cores, half of it the differential tests: DIFFERENTIAL_ROUNDS=1 asks less, DIFFERENTIAL_ROUNDS=40 is 20,000 statements in Trino.
nightly: export SKIPBRIDGE_LAWS = nightly
nightly: setup
	$(BIN)/pytest -q tests/laws tests/rules tests/storage tests/behaviour/test_build_law.py tests/behaviour/test_clustering_kills.py tests/unit/expression/test_like_match.py
	$(BIN)/pytest -q tests/engines
	$(BIN)/python -m tests.benchmark tpch tpcds

bench: setup
	$(BIN)/python -m tests.benchmark

# Writes constraints.txt anew from pyproject.toml: versions and hashes, no addresses.
lock:
	uv pip compile pyproject.toml --all-extras --generate-hashes --no-emit-index-url --universal \
		--python-version 3.11 --quiet --output-file constraints.txt

clean:
	rm -rf $(VENV) demo-out build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
