# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""VQF for the attitude and filterpy's Kalman filter for the velocity: pip install vqf filterpy.

VQF ([Laidig2023], doi 10.1016/j.inffus.2022.10.014) knows no heading from gyroscope and
accelerometer. The way of the fixes tells it, as soon as they have moved by 3 m.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from filterpy.kalman import KalmanFilter
from scipy.spatial.transform import Rotation
from vqf import VQF

from sim2real_eval.judge import Estimate
from sim2real_eval.recording import Recording
from sim_sensors.core import Parameters, parameter
from sim_sensors.world import LocalFrame
from sim_sensors.world.geodesy import STANDARD_GRAVITY


@dataclasses.dataclass(frozen=True)
class VqfKalman(Parameters):
    """Position and velocity, east and north, of a vehicle that drives forward."""

    acceleration: float = parameter(0.3, 'm/s^2', 'Deviation of the acceleration.', above=0.0)
    way: float = parameter(3.0, 'm', 'Of the fixes, until the heading is known.', above=0.0)

    def judge(self, recording: Recording) -> Estimate:
        """Return position and velocity at the stamps of the IMU."""
        imu, fixes = recording.require('imu'), recording.require('gps')
        world = LocalFrame(fixes.latitude[0], fixes.longitude[0], fixes.altitude[0])
        place = world.to_enu(fixes.latitude, fixes.longitude, fixes.altitude)[:, :2]
        dt = float(np.median(np.diff(imu.stamp_ns))) * 1e-9
        attitude = VQF(dt).updateBatch(
            np.ascontiguousarray(imu.angular_velocity),
            np.ascontiguousarray(imu.linear_acceleration),
        )['quat6D'][:, [1, 2, 3, 0]]
        turned = Rotation.from_quat(attitude)
        level = turned.apply(imu.linear_acceleration) - [0.0, 0.0, STANDARD_GRAVITY]
        forward = turned.apply([1.0, 0.0, 0.0])

        kalman = KalmanFilter(dim_x=5, dim_z=2)  # east, north, their rates, heading of VQF's axes
        kalman.x, kalman.H = np.zeros(5), np.eye(2, 5)
        kalman.P = np.diag([10.0, 10.0, 900.0, 900.0, 0.0])
        known, seen, found = False, 0, np.empty((len(imu), 4))
        for k, stamp in enumerate(imu.stamp_ns):
            cosine, sine = np.cos(kalman.x[4]), np.sin(kalman.x[4])
            push = known * np.array([[cosine, -sine], [sine, cosine]]) @ level[k, :2]
            kalman.F = np.eye(5)
            kalman.F[:2, 2:4] = dt * np.eye(2)
            kalman.F[2:4, 4] = dt * np.array([-push[1], push[0]])
            kalman.Q = np.diag([0.0, 0.0, self.acceleration**2, self.acceleration**2, 1e-6]) * dt
            kalman.predict()
            # filterpy moves x by F; what the acceleration adds is not a product with the heading.
            kalman.x[2:4] += dt * push - kalman.F[2:4, 4] * kalman.x[4]
            while seen < len(fixes) and fixes.stamp_ns[seen] <= stamp:
                variance = fixes.position_covariance[seen, :2, :2]
                kalman.update(place[seen], R=variance if variance.any() else np.eye(2))
                way = place[seen] - place[0]
                if not known and np.hypot(*way) > self.way:
                    known = True
                    kalman.x[4] = np.arctan2(way[1], way[0])
                    kalman.x[4] -= np.arctan2(forward[k, 1], forward[k, 0])
                    kalman.P[4], kalman.P[:, 4], kalman.P[4, 4] = 0.0, 0.0, 0.3**2
                seen += 1
            found[k] = kalman.x[:4] if seen > 2 else np.nan
        told = np.isfinite(found[:, 0])  # two fixes tell a velocity
        flat = np.zeros((told.sum(), 1))
        return Estimate(
            imu.stamp_ns[told],
            np.hstack([found[told, 2:], flat]),
            position=np.hstack([found[told, :2], flat]),
        )
