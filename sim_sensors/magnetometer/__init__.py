# SPDX-License-Identifier: Apache-2.0
"""Magnetometers: true motion through a magnetic field in, field with errors out."""
