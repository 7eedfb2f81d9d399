# SPDX-License-Identifier: Apache-2.0
# `make demo` and `make test` need Python >= 3.10 with venv, and PyPI; they set up the rest in .venv.

PYTHON ?= python3
VENV ?= .venv
DEMO_OUT ?= sim2real_demo
DEMO_ARGS ?=
SECONDS ?= 600

# Real recordings and reference traces are not part of the repository; tests that need them skip.
export SIM2REAL_REAL ?= $(abspath ../shared/real)
export SIM2REAL_REFERENCE ?= $(abspath ../shared/reference)

# A sourced ROS shell or another environment must not lend packages or pytest plugins to the tests:
# a fresh machine would then fail where this one passes.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV
unexport AMENT_PREFIX_PATH COLCON_PREFIX_PATH CMAKE_PREFIX_PATH
# Plots are drawn into files, and as many threads as workers must not fight over the cores.
export MPLBACKEND := Agg
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
# What is compiled here is compiled once: where the command `sim2real` of this tree looks for it,
# and also for what colcon makes of these sources.
export NUMBA_CACHE_DIR ?= $(abspath sim_sensors/__pycache__)

BIN := $(VENV)/bin
SETUP_FILES := setup.py setup.cfg pyproject.toml
# Doubly quiet: errors only. Warnings about mirrors and the like are the machine's own business.
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input -qq

.DEFAULT_GOAL := help
# One step at a time, whatever -j says: each is built to fill two cores by itself.
.NOTPARALLEL:
.PHONY: help demo test lint format unit docs oldest colcon bench fuzz clean
