# SPDX-License-Identifier: Apache-2.0
"""Inertial measurement units: the sensor, its error models and the orientation it publishes."""
