# SPDX-License-Identifier: Apache-2.0
"""Recordings of vehicles that share no code with the package, to validate `sim2real check`."""
