# SPDX-License-Identifier: Apache-2.0
"""Sensor models as files of other simulators, and back.

A model is turned into the parameters of the simulator's own law (`law_fit`), which one of our
preset classes implements (`imu_simulators`, `gps_simulators`), and written in the simulator's
format (`formats`).
"""
