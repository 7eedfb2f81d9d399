# SPDX-License-Identifier: Apache-2.0
"""Attitude from gyroscope, accelerometer, magnetometer and camera."""
