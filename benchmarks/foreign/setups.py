# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Equipment and course of one recording, drawn at random within what is usual."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from .earth import Place

PLACES: tuple[Place, ...] = (
    (52.52, 13.40, 78.0),
    (-33.87, 151.21, 62.0),
    (0.31, 32.58, 1190.0),
    (-0.18, -78.47, 2850.0),
    (65.01, 25.47, 55.0),
    (37.77, -122.42, 16.0),
    (-54.80, -68.30, 40.0),
    (1.35, 103.82, 22.0),
    (45.50, 5.99, 340.0),
    (64.14, -21.94, 105.0),
    (35.68, 139.69, 80.0),
    (-23.55, -46.63, 760.0),
    (0.0002, 32.04, 1150.0),
    (-16.80, 179.9996, 12.0),
)
"""Berlin, Sydney, Kampala, Quito, Oulu, San Francisco, Ushuaia, Singapore, Chambery, Reykjavik,
Tokyo, Sao Paulo, the equator in Uganda, and the date line in Fiji."""

MOUNTINGS = {
    'level': (0.0, 0.0, 0.0),
    'left': (0.0, 0.0, 90.0),
    'right': (0.0, 0.0, -90.0),
    'backward': (0.0, 0.0, 180.0),
    'z_down': (180.0, 0.0, 0.0),
    'upside_down': (0.0, 180.0, 0.0),
    'z_down_left': (180.0, 0.0, 90.0),
    'upright': (0.0, -90.0, 0.0),
    'tilted': (12.0, -25.0, 40.0),
}
"""Roll, pitch and yaw of the IMU in base_link, deg."""

IMU_GRADES = {
    # rate noise and bias, force noise and bias, steps of rate and force, scale error
    'consumer': (2.5e-3, 3.0e-3, 0.035, 0.06, 1.06e-3, 1.2e-3, 4e-3),
    'industrial': (8e-4, 6e-4, 0.012, 0.02, 1.3e-4, 6e-4, 1.5e-3),
    'tactical': (2e-4, 5e-5, 0.004, 0.004, 1e-6, 1e-5, 3e-4),
}
"""Typical MEMS of a phone or autopilot, of a robot, and of a survey."""

GPS_KINDS = {
    # wander and noise of a horizontal axis in m, time constant in s, status
    'single': (1.2, 0.25, 60.0, 0),
    'sbas': (0.6, 0.15, 80.0, 1),
    'rtk': (0.008, 0.006, 30.0, 2),
}
TRUTHS = {
    # position noise and wander (m), angle noise and wander (deg), speed and rate noise
    'simulator': (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    'rtk_ins': (2e-4, 0.012, 0.002, 0.06, 0.006, 6e-4),
    'ins': (5e-4, 0.03, 0.004, 0.12, 0.015, 1e-3),
    'mocap': (0.0008, 0.0005, 0.08, 0.03, 0.02, 6e-3),
}


@dataclasses.dataclass(frozen=True)
class Setup:
    """Equipment and motion of one recording.

    Attributes
    ----------
    vehicle, seed, duration, rest, hills, place
        Of the motion; `rest` below 0 starts on the move.
    imu, imu_rate, mounting, misalignment, lever_imu, vibration
        Grade, Hz, key of `MOUNTINGS`, degrees that no transform declares, m, and m/s^2.
    jitter : float
        Deviation of the times of measurement of the IMU, as a share of their interval.
    orientation : bool
        Whether the IMU publishes an orientation.
    gps, gps_rate, lever_gps, tunnel
        Kind, Hz, m, and seconds without a fix.
    truth, truth_rate
        Kind and Hz.
    odometry, magnetometer : bool
        Whether they are recorded.
    declares : bool
        Whether the bag holds static transforms.
    peculiarity : str
        What is unusual and harmless; empty for nothing.
    """

    vehicle: str
    seed: int
    duration: float
    rest: float
    hills: float
    place: Place
    imu: str
    imu_rate: float
    mounting: str
    misalignment: float
    lever_imu: tuple[float, float, float]
    vibration: float
    orientation: bool
    gps: str
    gps_rate: float
    lever_gps: tuple[float, float, float]
    truth: str
    truth_rate: float
    odometry: bool
    magnetometer: bool
    tunnel: float = 0.0
    jitter: float = 1e-4
    declares: bool = True
    peculiarity: str = ''

    @property
    def mounted(self) -> Rotation:
        """Declared rotation from the axes of the IMU to those of the body."""
        return Rotation.from_euler('xyz', MOUNTINGS[self.mounting], degrees=True)


_SIZES = {
    # lever arms of IMU and antenna (m), vibration (m/s^2), duration (s)
    'car': ((0.4, 0.2, 0.5), (1.0, 0.3, 1.5), 0.25, (70.0, 120.0)),
    'truck': ((1.5, 0.4, 1.0), (2.5, 0.8, 3.0), 0.35, (90.0, 150.0)),
    'drone': ((0.03, 0.03, 0.03), (0.05, 0.05, 0.12), 0.8, (60.0, 100.0)),
    'boat': ((0.8, 0.3, 0.6), (0.8, 0.5, 2.0), 0.2, (90.0, 150.0)),
}


def draw_setup(rng: np.random.Generator, vehicle: str, **fixed: Any) -> Setup:
    """Return a setup of a vehicle; `fixed` holds attributes that are not drawn."""
    lever_imu, lever_gps, vibration, lasts = _SIZES[vehicle]
    truth = str(rng.choice(['simulator', 'rtk_ins', 'rtk_ins', 'ins']))
    rates = {'simulator': (50.0, 100.0, 200.0), 'mocap': (100.0, 200.0)}
    hills = {'boat': (0.1, 0.4), 'drone': (0.0, 0.0)}.get(vehicle, (0.01, 0.14))
    drawn: dict[str, Any] = {
        'vehicle': vehicle,
        'seed': int(rng.integers(2**31)),
        'duration': float(np.round(rng.uniform(*lasts))),
        'rest': float(rng.uniform(3.0, 8.0)),
        'hills': float(rng.uniform(*hills)),
        'place': PLACES[rng.integers(len(PLACES))],
        'imu': str(rng.choice(['consumer', 'consumer', 'industrial', 'tactical'])),
        'imu_rate': float(rng.choice([50.0, 100.0, 100.0, 125.0, 200.0, 200.0, 400.0])),
        'mounting': str(rng.choice(['level', 'level', 'level', *MOUNTINGS])),
        'misalignment': float(rng.uniform(0.0, 0.6)),
        'lever_imu': tuple(np.round(rng.uniform(-1.0, 1.0, 3) * lever_imu, 3)),
        'vibration': vibration * float(rng.uniform(0.3, 1.5)),
        'orientation': bool(rng.random() < 0.6),
        'gps': str(rng.choice(['single', 'sbas', 'rtk', 'rtk'])),
        'gps_rate': float(rng.choice([1.0, 2.0, 4.0, 5.0, 5.0, 10.0, 10.0, 20.0])),
        'lever_gps': tuple(np.round(rng.uniform(-1.0, 1.0, 3) * lever_gps, 3)),
        'truth': truth,
        'odometry': bool(rng.random() < 0.5),
        'magnetometer': bool(rng.random() < 0.3),
    }
    drawn |= fixed
    usual = rates.get(drawn['truth'], (20.0, 50.0, 100.0))
    drawn.setdefault('truth_rate', float(rng.choice(usual)))
    return Setup(**drawn)


PECULIARITIES: dict[str, dict[str, Any]] = {
    'starts while moving': {'rest': -1.0},
    'stamps jitter by 1 %': {'jitter': 0.01},
    'mounted one degree askew': {'misalignment': 1.1},
    'truth at 10 Hz': {'truth': 'rtk_ins', 'truth_rate': 10.0},
    'stands for 25 s': {'rest': 25.0, 'truth': 'simulator', 'gps': 'single'},
    'receiver starts late': {},
    'poses at 20 Hz without velocities': {'truth': 'rtk_ins', 'truth_rate': 20.0},
    'accelerometer bias of 0.1 m/s^2': {'imu': 'industrial'},
    'gyroscope bias that walks': {'imu': 'consumer'},
    'tunnel': {'tunnel': 8.0, 'gps': 'single', 'gps_rate': 5.0},
    'no transforms, all at the origin': {
        'declares': False, 'mounting': 'level', 'lever_imu': (0.0, 0.0, 0.0),
        'lever_gps': (0.0, 0.0, 0.0), 'misalignment': 0.2,
    },
    'motion capture': {'truth': 'mocap'},
    'messages arrive in bursts, stamps are right': {},
    'covariance is not known (type 1), and honest': {'gps': 'single'},
    'lost 0.3 % of the messages of the IMU': {},
}  # fmt: skip
"""Harmless peculiarities of clean recordings, and what they fix of a setup."""


def clean_setups(seed: int, count: int) -> list[Setup]:
    """Return the setups of clean recordings: vehicles in turn, half of them with a peculiarity."""
    names = [name for one in PECULIARITIES for name in (one, '')] + ['']
    setups = []
    for k in range(count):
        rng = np.random.default_rng([seed, 1, k])
        vehicle = ('car', 'truck', 'drone', 'boat')[k % 4]
        # 31 names and 4 vehicles have no common divisor: combinations change.
        name = names[k % len(names)]
        turned = list(MOUNTINGS)[(k // 2) % len(MOUNTINGS)] if k % 2 else 'level'
        fixed = {'mounting': turned, **PECULIARITIES.get(name, {})}
        # Halls of motion capture are small.
        vehicle = 'drone' if fixed.get('truth') == 'mocap' else vehicle
        setups.append(draw_setup(rng, vehicle, peculiarity=name, **fixed))
    return setups
