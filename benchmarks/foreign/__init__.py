# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Recordings of vehicles that share no code with the package, to validate `sim2real check`."""
