# make run     start the broker (ARGS="--port 0 --ephemeral" passes arguments)
# make test    everything: all tests, then format, lint and types; minutes (ARGS="-n 0" runs them one by one)
# make check   format, lint, types and the fast tests, in under a minute
# make bench   the benchmark table (ARGS="--quick", ARGS="--bootstrap host:port")
# make bench-storage   what files cost, beside Apache Kafka: many partitions, recovery, compaction (needs Java)
# make bench-coordinators   groups, transactions and share groups, beside Apache Kafka (needs Java)
# make bench-cluster   replication and failover of three nodes, beside Apache Kafka (needs Java)
# make bench-peers   the same figures beside Apache Kafka, kfake and Tansu (needs Java, Maven and Go)
# make matrix  plays the clients' scenarios against Ottla and Apache Kafka anew (needs Java, Maven, Go, Node, Rust and kcat)
# make tools   what Kafka's command line tools say of Apache Kafka, kept anew, and of Ottla (needs Java and Maven)
# make oracle  what compares us with Apache Kafka itself (needs Java and Maven)
#
# Each target creates what it needs in .venv.  Nothing else has to be installed but Python 3.11+.

PYTHON ?= $(firstword $(foreach name,python3 python3.14 python3.13 python3.12 python3.11,$(shell \
    $(name) -c 'import sys; sys.version_info >= (3, 11) and print("$(name)")' 2>/dev/null)))
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
ARGS ?=

# Three processes share the files with tests: two have a core each while one waits for a broker or a client.
# A file's tests stay together, as they may share a broker.
IN_PARALLEL := -n 3 --dist loadfile --no-loadscope-reorder

# Nothing that a test writes is meant to last, and a disk makes it wait: it goes to memory where two gigabytes are
# free there and programs may be started from it (a container may have neither).  TMPDIR=/elsewhere decides otherwise.
IN_MEMORY := $(shell test -w /dev/shm && ! grep -q ' /dev/shm .*noexec' /proc/mounts \
    && df -Pk /dev/shm | awk 'NR > 1 && $$4 > 2000000 { print "/dev/shm" }')
test fast: export TMPDIR ?= $(IN_MEMORY)

.DEFAULT_GOAL := help
.PHONY: help run test check format lint types fast bench bench-storage bench-coordinators bench-cluster bench-peers matrix tools oracle clean

help:
	@sed -n '1,/^$$/s/^# \{0,1\}//p' Makefile

run: $(VENV)/.runtime
	@exec $(BIN)/python -m ottla $(ARGS)

# The types are checked while tests wait for something.
test: $(VENV)/.dev
	@nice $(BIN)/mypy >$(VENV)/types.log 2>&1 & types=$$!; \
	$(BIN)/python -m pytest $(IN_PARALLEL) $(ARGS); tests=$$?; \
	wait $$types; types=$$?; cat $(VENV)/types.log; \
	$(BIN)/ruff format --check . && $(BIN)/ruff check . && test $$tests -eq 0 && test $$types -eq 0

check: lint types fast

fast: $(VENV)/.dev
	$(BIN)/python -m pytest $(IN_PARALLEL) -m "not slow" $(ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.dev
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks $(ARGS)

bench-storage: $(VENV)/.dev
	$(BIN)/python -m benchmarks storage $(ARGS)

bench-coordinators: $(VENV)/.dev
	$(BIN)/python -m benchmarks coordinators $(ARGS)

bench-cluster: $(VENV)/.dev
	$(BIN)/python -m benchmarks cluster $(ARGS)

bench-peers: $(VENV)/.dev
	$(BIN)/python -m benchmarks peers $(ARGS)

matrix: $(VENV)/.dev
	$(BIN)/python -m compat.matrix refresh $(ARGS)

tools: $(VENV)/.dev
	$(BIN)/python -m compat.kafka_tools record
	$(BIN)/python -m compat.kafka_tools compare

oracle: $(VENV)/.dev
	$(BIN)/python -m compat.oracle $(ARGS)

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache build dist

# The stamps are older than pyproject.toml after any change to it; then the packages are brought up to date.
$(VENV)/.runtime: pyproject.toml $(BIN)/python
	$(PIP) install --editable . --group runtime
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.runtime
	$(PIP) install --group dev
	@# Bytecode of all tests, once: processes that begin together would each compile them all.
	@$(BIN)/python -m pytest --collect-only -qq >/dev/null 2>&1 || true
	@touch $@

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Ottla needs Python 3.11 or newer; none was found. Set PYTHON=/path/to/python3." >&2; exit 1; }
	@$(PYTHON) -c "import ensurepip, venv" 2>/dev/null || { echo "$(PYTHON) cannot create virtual environments: install its venv package (on Debian: python3-venv), or set PYTHON to another one." >&2; exit 1; }
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade "pip>=25.1"
