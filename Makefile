# SPDX-License-Identifier: Apache-2.0
# `make demo` and `make test` need Python >= 3.10 with venv, and PyPI; they set up the rest in .venv.

PYTHON ?= python3
VENV ?= .venv
DEMO_OUT ?= sim2real_demo
# Springs and a rough road if the physics engine is installed.
DEMO_ARGS ?= $(shell $(BIN)/python -c 'import mujoco' 2>/dev/null && echo --road C)
SECONDS ?= 600
SEED ?= 1

# Real recordings and reference traces are not part of the repository; tests that need them skip.
export SIM2REAL_REAL ?= $(abspath ../shared/real)
export SIM2REAL_REFERENCE ?= $(abspath ../shared/reference)

# Packages and pytest plugins of a sourced ROS shell or another environment must not be used: tests
# would pass here and fail on a fresh machine.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV
unexport AMENT_PREFIX_PATH COLCON_PREFIX_PATH CMAKE_PREFIX_PATH
# Byte code is kept even if a container disables it: otherwise each test process would compile all
# sources again.
unexport PYTHONDONTWRITEBYTECODE
# Plots are drawn into files. Workers use one thread each.
export MPLBACKEND := Agg
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
# colcon installs colorama; numba then formats internal errors in colour, 1/30 of the compile time.
export NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING := 1
# One cache of machine code for the tests, the command `sim2real` of this tree and the colcon build.
export NUMBA_CACHE_DIR ?= $(abspath sim_sensors/__pycache__)

BIN := $(VENV)/bin
SETUP_FILES := setup.py setup.cfg pyproject.toml
# -qq shows only errors, not warnings about mirrors of the machine.
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input -qq
# If make can, print the output of a target when it has ended.
SYNC := $(if $(filter output-sync,$(.FEATURES)),--output-sync)

.DEFAULT_GOAL := help
# Run one step at a time despite -j; only `make test` runs steps in parallel.
ifndef TOGETHER
.NOTPARALLEL:
endif
.PHONY: help demo test suite lint format unit pages docs bounds oldest colcon constraints bench validation fuzz mutants clean

help: ## show this list
	@echo 'Targets (variables: PYTHON=$(PYTHON) VENV=$(VENV)):'
	@sed -n 's/^\([a-z]*\):.*## /  make \1	/p' Makefile | expand -t 16

demo: $(VENV)/.installed ## set up and run the small built-in study with plots
	$(BIN)/sim2real demo --out $(DEMO_OUT) $(DEMO_ARGS)

# The suite waits for other processes a seventh of its time, which the other targets use. Only its
# output is printed at once.
test: $(VENV)/.installed-docs $(VENV)/.installed-ros ## set up and run linters, type check, docs, colcon build and colcon test, tests
	@$(MAKE) --no-print-directory --jobs=3 $(SYNC:%=%=target) TOGETHER=1 suite colcon lint pages

suite:
	@$(MAKE) --no-print-directory $(SYNC:%=%=none) unit

lint: $(VENV)/.installed-test ## ruff, mypy, the order of imports and the prose of the pages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/python docs/prose.py
	@$(BIN)/pip-audit --progress-spinner off --no-deps --disable-pip -r constraints.txt >$(VENV)/audit.txt 2>&1 \
	  && ! grep -q 'could not be audited' $(VENV)/audit.txt \
	  || { grep -q '^Found ' $(VENV)/audit.txt && cat $(VENV)/audit.txt && exit 1; } \
	  || echo "make: known vulnerabilities of libraries were not checked; pip-audit reports: $$(tail -n 1 $(VENV)/audit.txt)"

format: $(VENV)/.installed-test ## let ruff format the sources and fix what it can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# More workers than the two cores of a small machine, because tests of nodes wait for each other.
unit: $(VENV)/.installed-test $(VENV)/.installed-ros ## the test suite; narrow it with ARGS='test/test_x.py -k name'
	$(BIN)/python -m pytest --numprocesses=3 --dist=loadfile --no-loadscope-reorder --durations=10 $(ARGS)

# Strict: a dead link, or a page that is missing or outside the navigation, fails.
pages: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

docs: pages ## build the documentation with its gallery into site/, without network; minutes the first time
	$(BIN)/python docs/gallery.py site/gallery
	@echo 'Documentation: site/index.html (search needs a server: $(BIN)/python -m http.server -d site)'

# The last Python that the oldest numpy and numba support is 3.11.
OLDEST := $(VENV)-oldest/bin/python
bounds: ## the demo and a recording of each kind with the oldest libraries of setup.py and no test tools; Python <= 3.11
	$(PYTHON) -m venv --clear $(VENV)-oldest
	sed -n -e "/install_requires/,/\]/s/^ *['\"]\([A-Za-z0-9.]*\)>=\([0-9.]*\).*/\1==\2/p" \
	  -e "s/^[A-Z]* = ['\"]\([a-z]*\)>=\([0-9.]*\).*/\1==\2/p" setup.py > $(VENV)-oldest/constraints.txt
	$(OLDEST) -m pip --disable-pip-version-check -qq install \
	  --constraint $(VENV)-oldest/constraints.txt --editable '.[ulog]'
	$(OLDEST) test/clean_install.py

oldest: bounds ## what bounds does, then the test suite with these libraries
	$(OLDEST) -m pip --disable-pip-version-check -qq install \
	  --constraint $(VENV)-oldest/constraints.txt --editable '.[test]'
	$(OLDEST) -m pytest $(ARGS)

# Write the part of the test environment that the package itself needs.
constraints: $(VENV)/.installed-test ## write constraints.txt, the versions of the libraries that passed the tests, for a release
	$(BIN)/python -m pip freeze --exclude-editable > $(VENV)/frozen.txt
	$(PYTHON) -m venv $(VENV)/release
	$(VENV)/release/bin/python -m pip --disable-pip-version-check -qq install \
	  --constraint $(VENV)/frozen.txt --editable '.[cluster,fusion,gtsam,mujoco,pandas,ulog]'
	made_on=$$($(BIN)/python -c 'import platform; print("%s.%s" % platform.python_version_tuple()[:2], "and", platform.system())') && \
	  sed -n "s/on Python [^;]*;/on Python $$made_on;/; /^#/p" constraints.txt > $(VENV)/constraints.txt
	$(VENV)/release/bin/python -m pip freeze --exclude-editable >> $(VENV)/constraints.txt
	mv $(VENV)/constraints.txt constraints.txt
	rm -rf $(VENV)/release

colcon: $(VENV)/.installed-test ## colcon build and colcon test in a scratch workspace
	PATH="$(abspath $(BIN)):$$PATH" bash .ci/colcon

bench: $(VENV)/.installed-test ## measure speed; a few minutes
	@set -e; for script in benchmarks/*_speed.py; do echo "== $$script"; $(BIN)/python $$script; done

validation: $(VENV)/.installed-test ## hold check against foreign recordings, run docs/sources.md, measure the tables of docs/explanation/validation.md; about an hour, can be interrupted
	$(BIN)/python benchmarks/foreign/validate_check.py
	$(BIN)/python benchmarks/allan_low_pass.py --seeds 2
	$(BIN)/python benchmarks/sources.py
	$(BIN)/python benchmarks/validation.py

fuzz: $(VENV)/.installed-test ## fuzz every reader for SECONDS=600; inputs that break one are kept in fuzz_found/
	$(BIN)/python test/fuzzing.py --seconds $(SECONDS)

mutants: $(VENV)/.installed-test ## change 200 lines, drawn with SEED=1, one at a time: does a test fail? Hours; --again continues
	$(BIN)/python benchmarks/mutants.py --seed $(SEED)

clean: ## remove the environment, caches and build results, not your outputs
	rm -rf $(VENV) $(VENV)-oldest build install log dist site fuzz_found mutants_found *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find sim_sensors sim2real_eval test launch benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps are written last, so an interrupted set-up is done again.
$(VENV)/.installed: $(SETUP_FILES) | $(VENV)/.created
	@echo 'Installing sim2real_sensors into $(VENV) (once, from PyPI) ...'
	@$(PIP) install --editable .
	@touch $@

$(VENV)/.installed-test: $(SETUP_FILES) | $(VENV)/.created
	@echo 'Installing sim2real_sensors and its test tools into $(VENV) (once, from PyPI) ...'
	@$(PIP) install --editable '.[test]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: $(SETUP_FILES) | $(VENV)/.created
	@echo 'Installing sim2real_sensors and MkDocs into $(VENV) (once, from PyPI) ...'
	@$(PIP) install --editable '.[docs]'
	@touch $@ $(VENV)/.installed

# Available only for some Python versions on Linux; without them the tests of the nodes are skipped.
$(VENV)/.installed-ros: setup.py | $(VENV)/.installed-test
	@echo 'Installing rclpy and Fast DDS into $(VENV) for the tests of the nodes (once, from PyPI) ...'
	@$(PIP) install --editable '.[ros]' >/dev/null 2>&1 || \
	  echo 'make: PyPI has no rclpy for this Python and machine; the tests of the nodes are skipped'
	@touch $@

# Debian and Ubuntu ship python3 without venv; report this in one line.
$(VENV)/.created:
	@command -v $(PYTHON) >/dev/null || { \
	  echo 'make: no $(PYTHON) found; install Python 3.10 or later, or run make PYTHON=/path/to/python' >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	  echo "make: $$($(PYTHON) --version) is too old, 3.10 is needed; say make PYTHON=/path/to/python" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo 'make: $(PYTHON) has no venv; run apt-get install python3-venv, or run make PYTHON=/path/to/python' >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@touch $(VENV)/COLCON_IGNORE $@
