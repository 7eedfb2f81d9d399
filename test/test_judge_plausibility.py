# SPDX-License-Identifier: Apache-2.0
"""Implausible motions are reported, plausible motions are not."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from sim2real_eval.judge.robot_localization.advice import datum_advice, motion_advice, twist_advice
from sim2real_eval.judge.robot_localization.configuration import (
    FilterConfig,
    NavsatConfig,
    SourceConfig,
)
from sim_sensors.core.config_files import config_path
from sim_sensors.core.measurements import FixArray, OdometryArray

CLEAN = FilterConfig.from_file(config_path('judge', 'clean.yaml'))
NAVSAT = NavsatConfig.from_file(config_path('judge', 'clean_navsat.yaml'))
STAMPS = np.arange(4, dtype=np.int64) * 100_000_000


def odometry(frame: str, child: str) -> OdometryArray:
    return OdometryArray(
        STAMPS, STAMPS, frame, child, np.zeros((4, 3)), np.tile([0.0, 0.0, 0.0, 1.0], (4, 1)),
        np.zeros((4, 3)), np.zeros((4, 3)), np.zeros((4, 6, 6)), np.zeros((4, 6, 6)),
    )  # fmt: skip


@pytest.mark.parametrize(
    ('frame', 'child', 'reported'),
    [
        ('odom', 'base_link', False),
        ('odom', 'wheel', False),
        ('odom', '', False),
        ('odom', 'odom', True),
        ('site', '/site', True),
        ('odom', 'map', True),
    ],
)
def test_velocity_in_a_world_frame(frame: str, child: str, reported: bool) -> None:
    source: SourceConfig = dataclasses.replace(
        CLEAN.sources[0], name='odom1', topic='wheel', mask=np.arange(15) == 6.0
    )
    config = dataclasses.replace(CLEAN, sources=(source,))
    notes = twist_advice(config, {'odom1': odometry(frame, child)}, turned=False)
    assert len(notes) == int(reported)


@pytest.mark.parametrize(('latitude', 'reported'), [(43.0, False), (43.8, False), (44.0, True)])
def test_datum_far_from_the_first_fix(latitude: float, reported: bool) -> None:
    """A degree of latitude is 111 km."""
    navsat = dataclasses.replace(NAVSAT, datum=(latitude, -89.0, 0.0))
    ones, zero = np.ones(4), np.zeros(4)
    fixes = FixArray(
        STAMPS, STAMPS, 'gps', 43.0 * ones, -89.0 * ones, zero,
        np.zeros(4, dtype=np.int64), np.zeros((4, 3, 3)), np.zeros(4, dtype=np.int64),
    )  # fmt: skip
    assert len(datum_advice(navsat, fixes)) == int(reported)


def test_speed_and_jumps() -> None:
    position, velocity = np.zeros((4, 3)), np.zeros((4, 3))
    velocity[:, 0] = 60.0
    position[:, 0] = 60.0 * STAMPS * 1e-9
    assert motion_advice(STAMPS, position, velocity) == []
    velocity[2, 1], position[3, 2] = 120.0, 5000.0
    fast, jump = motion_advice(STAMPS, position, velocity)
    assert fast.numbers == {
        'limit': 100.0,
        'first': pytest.approx(0.2),
        'speed': pytest.approx(np.hypot(60.0, 120.0)),
    }
    assert jump.numbers['first'] == pytest.approx(0.3)
    assert jump.numbers['step'] == pytest.approx(5000.0, rel=1e-3)
    nothing = np.full((4, 3), np.nan)
    assert motion_advice(STAMPS, nothing, nothing) == []
    assert motion_advice(STAMPS[:0], nothing[:0], nothing[:0]) == []
