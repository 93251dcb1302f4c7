# `make demo` and `make test` set themselves up: the first call makes .venv, later ones reuse it.
PYTHON ?= python3
BIN := .venv/bin
# For two cores: some tests wait for a deadline, and a third process finds work meanwhile.
JOBS ?= 3

# What tests need from Debian; says in one line what will not run where it cannot be installed.
debian:
	@sh tests/debian_packages.sh

.PHONY: debian setup demo test bench mistakes lint handouts stubs samples picture clean

setup: .venv/ready samples

.venv/ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed: make PYTHON=python3.11 ..." >&2; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[staff,dev]'
	touch $@

samples: .venv/ready
	$(BIN)/python -m tests.sample_edits

demo: setup
	$(BIN)/grader grade tests/samples --out out/demo --fresh

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/grader handout check

test: setup debian lint
	$(BIN)/pytest tests/harness tests/browser tests/public tests/hidden -q -n $(JOBS) --submission reference

bench: .venv/ready
	$(BIN)/python -m tests.bench

mistakes: .venv/ready
	$(BIN)/python -m tests.mistakes

stubs: .venv/ready
	$(BIN)/grader handout stubs

handouts: stubs debian
	$(BIN)/grader handout build

picture: demo
	$(BIN)/python docs/picture.py

clean:
	rm -rf .venv build out tests/samples .pytest_cache .mypy_cache .ruff_cache
