# SPDX-License-Identifier: Apache-2.0
"""Wheel odometry: encoders, slip, noise, and the robots that carry the wheels."""
