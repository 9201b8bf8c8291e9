# Targets explain themselves: `make help`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp
JAR := src/lancepart/spark/jars/lancepart-spark.jar
JAVA := jvm/build.py $(shell find jvm/src jvm/resources -type f)
WORKERS ?= 2
SPARK ?= 4.1
ON_SPARK ?= $(addprefix tests/spark/test_,read.py joins.py writes.py sql.py sql_rows.py keys.py applied_filters.py procedures.py sql_writes.py stream.py service.py)
PYTEST := $(BIN)/python -m pytest

.DEFAULT_GOAL := help
.PHONY: help setup demo docs test test-rest test-all test-spark coverage check bench torture clean

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*?## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(STAMP): pyproject.toml requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "lancepart needs Python 3.11 or newer: install it, or run make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -r requirements.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $(STAMP)

$(JAR): $(JAVA) | $(STAMP)
	$(BIN)/python jvm/build.py

setup: $(STAMP) $(JAR)  ## Make .venv with the package installed editable

demo: setup  ## The main job on Spark, end to end, beside Parquet; writes demo-report.html
	@$(BIN)/python -m examples.demo

check: setup  ## Format, lint, types, direction of imports, documentation
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	@$(MAKE) --no-print-directory docs

docs: setup  ## The documentation as a site in build/site; warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

test: check  ## The checks and the quick tests: every capability at least once
	$(PYTEST) -n $(WORKERS) --ignore tests/spark -m "quick or not slow"
	$(PYTEST) tests/spark -m "quick or not slow"

test-rest: setup  ## The tests that `make test` leaves out, but for the long races and kills, with Delta, Iceberg and Ray
	$(BIN)/python -m pip install --quiet -r requirements-bench.txt
	$(PYTEST) -n $(WORKERS) --ignore tests/spark -m "slow and not quick"
	$(PYTEST) tests/spark -m "slow and not quick"

test-all: test test-rest  ## Every test but the long races and kills

test-spark: setup  ## A slice of the tests on another version of Spark: make test-spark SPARK=4.1
	test -d build/spark-$(SPARK) || $(BIN)/python -m pip install --quiet --target build/spark-$(SPARK) "pyspark==$(SPARK).*"
	PYTHONPATH=build/spark-$(SPARK) $(BIN)/python -m pytest -m "quick or not slow" $(ON_SPARK)

coverage: setup  ## Which lines the quick tests execute, Spark's aside; the worst modules first
	$(PYTEST) -n $(WORKERS) --ignore tests/spark -m "quick or not slow" --cov --cov-report=term --cov-report=html:build/coverage

torture: setup  ## Every test, with the long races and kills
	LANCEPART_TORTURE=1 $(BIN)/python -m pytest -v

OUT ?= $(if $(QUICK),build/benchmarks.md,docs/benchmarks.md)

bench: setup  ## Every suite beside its peers, written to docs/benchmarks.md; QUICK=1 takes five minutes and writes to build/, LARGE=1 hours
	$(BIN)/python -m pip install --quiet -r requirements-bench.txt
	@mkdir -p build
	$(if $(LARGE),LANCEPART_BENCH_LARGE=1) $(BIN)/python -m benchmarks $(if $(QUICK),--quick) --out $(OUT)

clean:  ## Remove what the other targets made
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache
