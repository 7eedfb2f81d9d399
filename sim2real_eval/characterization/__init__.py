# SPDX-License-Identifier: Apache-2.0
"""Sensor errors from recordings in which the sensor stood still."""
