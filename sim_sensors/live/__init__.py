# SPDX-License-Identifier: Apache-2.0
"""Sensors and followers on odometry that is still arriving."""
