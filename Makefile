# One command a chore. Each makes .venv from a bare checkout; the second time that costs nothing.
#   make demo | test | lint | bench      make test SLOW=1 ARGS='-k ticker'      make PYTHON=python3.13 test

.DEFAULT_GOAL := help
.PHONY: help demo test lint format bench gl clean

# python3 if it is one of those that are tested, else the newest of them that there is.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
READY := .venv/ready
WORKERS ?= 2
SLOW ?=
ARGS ?=

help:
	@sed -n '2,3s/^# *//p' Makefile

$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "hudsim needs Python 3.11, 3.12 or 3.13: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
		|| { echo "$(PYTHON) cannot make a virtual environment: apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,video]'
	@touch $@

gl: $(READY)  # only the cameras need an EGL library, so this only says so
	@$(BIN)/python -c 'import ctypes, sys; sys.platform == "linux" and ctypes.CDLL("libEGL.so.1")' 2>/dev/null \
		|| echo "No libEGL.so.1, so no cameras: apt-get install libegl1 libgl1 libgl1-mesa-dri" >&2

demo: gl
	$(BIN)/hudsim run arm-lift --policy scripted --mode realtime --episodes 1 --video --out runs/demo

test: gl
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup $(if $(SLOW),,-m 'not slow') $(ARGS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: gl
	$(BIN)/hudsim bench $(or $(BENCH),latency) $(ARGS)

clean:
	rm -rf .venv build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
