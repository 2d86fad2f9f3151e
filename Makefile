# Everything runs inside one virtual environment, .venv, made on first use.
PYTHON ?= python3
BIN := .venv/bin
# One BLAS thread a process: the test runner already uses every core.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

.PHONY: demo test test-all test-minimum lint benchmark docs experiments wheel clean

demo: .venv/installed
	$(ONE_THREAD) $(BIN)/python -W ignore tools/demo.py
	$(ONE_THREAD) $(BIN)/prudent compare breast_cancer --promise "error <= 5%" \
	  --methods minimax,calibrated --no-best --report report.html

test: lint
	$(ONE_THREAD) $(BIN)/pytest -n auto -m "not slow"

test-all: lint
	$(ONE_THREAD) $(BIN)/pytest -n auto

# The lowest declared versions; old releases of other libraries warn of their own.
test-minimum: .venv-minimum/installed
	$(ONE_THREAD) .venv-minimum/bin/pytest -n auto -m "not slow" \
	  -W ignore::DeprecationWarning -W ignore::PendingDeprecationWarning

lint: .venv/test-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

benchmark: .venv/test-installed
	$(ONE_THREAD) $(BIN)/python -m benchmarks.ratios

docs: .venv/docs-installed
	$(BIN)/sphinx-build -W --keep-going --quiet docs docs/_build/html

experiments: .venv/test-installed
	$(ONE_THREAD) $(BIN)/python -m experiments

.venv/pyvenv.cfg:
	$(PYTHON) -m venv .venv

.venv/installed: .venv/pyvenv.cfg pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

.venv/test-installed: .venv/pyvenv.cfg pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@

.venv/docs-installed: .venv/pyvenv.cfg pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dask,solvers,docs]'
	touch $@

wheel: .venv/pyvenv.cfg
	$(BIN)/python -m pip install --quiet --disable-pip-version-check build
	$(BIN)/python -m build

.venv-minimum/installed: pyproject.toml tools/minimum_versions.py
	$(PYTHON) -m venv .venv-minimum
	$(PYTHON) tools/minimum_versions.py > .venv-minimum/constraints.txt
	.venv-minimum/bin/python -m pip install --quiet --disable-pip-version-check \
	  --constraint .venv-minimum/constraints.txt --editable '.[test]'
	touch $@

clean:
	rm -rf .venv .venv-minimum dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
