# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Findings of the comparison of sensor signals."""

from __future__ import annotations

from sim2real_eval.common.findings import assumed, routine

GRID_TOO_FAST = routine(
    'signals.grid_too_fast',
    'the grid runs at {grid:.4g Hz}, the slowest sensor at {sensor:.4g Hz}: above {half:.4g Hz} '
    'the spectrum is interpolation',
    'No sensor measures above half its rate.',
    'choose a lower --rate',
)
OFF_GRID = routine(
    'signals.off_grid',
    'stamps are up to {off:.1g} periods off a grid of {grid:.4g Hz}: linear interpolation lowers '
    'the spectra at high frequencies',
    'Spectra need evenly spaced samples.',
)
RUN_SHORT = routine(
    'signals.run_short',
    '{window}: {asked:d} samples are longer than the shortest run; {taken:d} samples used',
    'Shorter segments resolve fewer low frequencies; the trend becomes the median of the run.',
    'record longer runs',
)
TOO_FEW_SAMPLES = routine(
    'signals.too_few_samples',
    'has {count:d} measurements and is left out; must have {least:d} or more',
    'Statistics of so few measurements have no meaning.',
)
TRUTH_SLOWER = assumed(
    'signals.truth_slower',
    'the truth has {truth:.3g Hz}, the IMU {imu:.3g Hz}: motion above {half:.3g Hz} counts as an '
    'error of a real sensor and is missing from a simulated one',
    'Vibration is part of the measured errors.',
    'use a faster truth, or compare below this frequency',
)
TRUTH_LEVEL = assumed(
    'signals.truth_level',
    'roll and pitch of the truth are always 0: the slope of the ground counts as an error of a '
    'real specific force',
    'The truth is planar. One degree of slope is 0.17 m/s^2.',
)
YAW_PUBLISHED = routine(
    'signals.yaw_published',
    'yaw is taken from the published orientation',
    'The IMU has an internal filter.',
)
YAW_INTEGRATED = routine(
    'signals.yaw_integrated',
    'yaw is the integral of the body z rate from the true heading at the first sample, without '
    'correction of bias and tilt',
    'The IMU publishes no orientation.',
)
YAW_UNLIKE = assumed(
    'signals.yaw_unlike',
    'yaw is not compared: {published:d} runs publish an orientation, {integrated:d} only rates',
    'A published yaw comes from a filter and an integrated yaw drifts, so their errors are not '
    'comparable.',
    'to integrate the rates of all runs: --yaw gyro',
)
NOT_RECORDED = assumed(
    'signals.not_recorded',
    'is not compared, because no signal of this sensor is in every real recording',
    'A simulated sensor can only be compared with a real one.',
    'name its topic with --topic, or leave the model out',
)
TOO_FEW_RUNS = routine(
    'signals.too_few_runs',
    '{real:d} real and {simulated:d} simulated runs ({pairing}) are too few for a significant '
    'difference: the smallest possible p-value is {least:.2g}',
    'A permutation test of n pairs has 2^n labellings.',
    'use at least 6 pairs, or 4 unpaired runs of each',
)
