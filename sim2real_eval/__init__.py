# SPDX-License-Identifier: Apache-2.0
"""Judges simulated sensors: recordings, the robot_localization judge, VEPD and its reports."""
