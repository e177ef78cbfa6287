# make run    installs, runs the routing problem, prints the table, writes out/report.html
# make test   ruff, mypy, import rules, and pytest
# make lint   the first three of these
# make quick  the last of these
# make format writes Parameters of docstrings, imports, line breaks
# make bench  our own bars, in about ten minutes; python -m benchmarks list | run | table | add for the rest
# make soak   the long tests
# make portable  the numerical tests under the arithmetic of other processors; ARITHMETICS=Prescott chooses one
# make lowest the suite with the lowest versions that pyproject.toml declares, in a folder of its own (.venv-lowest)
# make bare   the suite without any extra (.venv-bare); tests that need one are skipped
# make mutants  inserts known mistakes into a copy, one at a time; a test must fail for each
# make docs   the site, out/docs/index.html, which needs no network; a warning or a broken link fails it
# make check-docs  the tests of docs, gallery and release (tests/docs), which `make docs` runs too
# make dist   wheel and sdist in dist/, built twice in different places and compared bit for bit
# make tables the tables and pictures of docs/benchmarks, from benchmarks/results; oracle calls are measured
# make readme the tables of docs/start/first-run.md, from real runs

# tests start hundreds of processes, and each would compile the whole source again
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: run test quick lint format bench soak portable lowest bare mutants docs check-docs dist tables readme clean

run: $(VENV)/.run
	$(BIN)/tidewolf run routing --out out --force

test: $(VENV)/.dev
	$(MAKE) --no-print-directory -j 2 lint quick

quick: $(VENV)/.dev
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not soak"

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(VENV)/.dev
	$(BIN)/python -m tools.docstrings
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

soak: $(VENV)/.dev
	$(BIN)/python -m pytest -q -m soak

portable: $(VENV)/.dev
	$(BIN)/python -m tools.portable $(ARITHMETICS)

lowest: .venv-lowest/.done
	.venv-lowest/bin/python -m pytest -q -n 2 -m "not soak"

bare: .venv-bare/.done
	TIDEWOLF_BARE=1 CI=true .venv-bare/bin/python -m pytest -q -n 2 -m "not soak"

mutants: $(VENV)/.dev
	$(BIN)/python -m mutants

docs: $(VENV)/.dev
	rm -rf out/docs
	$(BIN)/sphinx-build -q -W --keep-going -d out/doctrees docs out/docs
	$(BIN)/python -m tools.links out/docs
	$(MAKE) check-docs

check-docs: $(VENV)/.dev
	$(BIN)/python -m pytest -q -n 2 -m "not soak" tests/docs

dist: .venv-dist/.done
	.venv-dist/bin/python -m tools.dist

tables: $(VENV)/.dev
	$(BIN)/python -m benchmarks table ranks traffic network energy gateway portfolio matrix paper size bars calls --write

readme: $(VENV)/.dev
	$(BIN)/python -m benchmarks.readme

$(VENV)/.run: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[app]"
	touch $@

$(VENV)/.dev: $(VENV)/.run
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[app,graph,serve,sweep,docs,dev]"
	touch $@

.venv-lowest/.done: pyproject.toml tools/lowest.py
	rm -rf .venv-lowest
	$(PYTHON) -m venv .venv-lowest
	$(PYTHON) tools/lowest.py app graph sweep > .venv-lowest/constraints.txt
	sed '/^scipy==/d' .venv-lowest/constraints.txt > .venv-lowest/others.txt  # skfolio of dev asks for a later one
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check -c .venv-lowest/others.txt -e ".[app,graph,serve,sweep,docs,dev]"
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r .venv-lowest/constraints.txt
	touch $@

.venv-bare/.done: pyproject.toml
	rm -rf .venv-bare
	$(PYTHON) -m venv .venv-bare
	.venv-bare/bin/python -m pip install --quiet --disable-pip-version-check -e . pytest pytest-xdist hypothesis array-api-strict
	touch $@

.venv-dist/.done: pyproject.toml
	rm -rf .venv-dist
	$(PYTHON) -m venv .venv-dist
	.venv-dist/bin/python -m pip install --quiet --disable-pip-version-check "hatchling>=1.26"
	touch $@

clean:
	rm -rf $(VENV) .venv-lowest .venv-bare .venv-dist out dist
