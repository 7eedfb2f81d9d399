# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Manoeuvres that a controller drives: the ART vehicle, and the differential-drive robot."""

from __future__ import annotations

import math

import numpy as np

from sim_sensors.core.errors import MotionError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.rotations import heading
from sim_sensors.core.seeding import stream
from sim_sensors.motion.course import course
from sim_sensors.motion.odometry import OdometryMotion
from sim_sensors.motion.paths import CONTROL_RATE, Pilot, RunVariation
from sim_sensors.motion.planar import Pose
from sim_sensors.motion.trajectory import Motion
from sim_sensors.motion.vehicles import (
    AckermannVehicle,
    Controller,
    DifferentialDrive,
    VehicleCommand,
    VehicleState,
)
from sim_sensors.motion.waypoints import Waypoints
from .follower import FollowSettings, drive_along
from .tracking import ReferenceMotion

_WAYPOINT_RATE = 5.0  # Hz, the default of `sim2real follow`
_LEVEL = 1e-3  # m of height, and sine of half the tilt
_MIN_SPEED = 0.1  # m/s, below which a commanded turn has no steering angle


def pilot_of(controller: str) -> Pilot:
    """Return a pilot of the ART vehicle that follows timed waypoints by one of `TRACKERS`.

    The reference moves along the waypoints at the speed that the throttle holds on level ground.
    Of the command (v, w), v becomes the throttle that holds it there, and w the angle
    atan(L w / v) of the front wheels.
    """

    def pilot(points: FloatArray, vehicle: AckermannVehicle, throttle: float) -> Controller:
        steps = np.hypot(*np.diff(points, axis=0).T)
        distance = np.concatenate([[0.0], np.cumsum(steps)])
        time = distance / max(vehicle.top_speed(throttle), _MIN_SPEED)
        x, y = points.T
        reference = ReferenceMotion(Waypoints(time, x, y, course(time, x, y)))
        robot = DifferentialDrive()
        settings = FollowSettings()
        tracker = settings.tracker(controller).start(reference, robot, 1.0 / CONTROL_RATE)

        def steer(time: float, state: VehicleState) -> VehicleCommand:
            wheels = tracker.command(time, Pose(state.x, state.y, state.heading))
            speed, yaw_rate = robot.forward(wheels)
            angle = math.atan(vehicle.wheelbase * yaw_rate / max(speed, _MIN_SPEED))
            return VehicleCommand(vehicle.throttle_at(speed), angle / vehicle.max_steer)

        return steer

    return pilot


def drive_robot(
    motion: Motion, controller: str, *, seed: int, run: str, variation: RunVariation | None = None
) -> Motion:
    """Let the differential-drive robot of `FollowSettings` follow a level motion.

    Parameters
    ----------
    motion : Motion
        Reference; its waypoints are 0.2 s apart.
    controller : str
        One of `TRACKERS`.
    seed, run
        Labels of the random streams.
    variation : RunVariation, optional
        Deviations of start position and heading; its other fields are those of the ART vehicle.

    Raises
    ------
    MotionError
        When the motion climbs or tilts.
    """
    vary = RunVariation() if variation is None else variation
    count = max(2, round((motion.end - motion.start) * _WAYPOINT_RATE) + 1)
    sampled = motion.at(np.linspace(motion.start, motion.end, count))
    climb, tilt = np.ptp(sampled.position[:, 2]), np.abs(sampled.orientation[:, :2]).max()
    if climb > _LEVEL or tilt > _LEVEL:
        raise MotionError(
            f'controller {controller} drives on level ground, and the motion climbs {climb:.3g} m '
            f'and tilts {math.degrees(2.0 * tilt):.3g} deg; take a level scenario or no controller'
        )
    x, y, _ = sampled.position.T
    headings = np.unwrap(heading(sampled.orientation))
    reference = ReferenceMotion(Waypoints(sampled.time - motion.start, x, y, headings))
    normals = np.clip(stream(seed, run, 'vehicle', 'start_pose').standard_normal(3), -3.0, 3.0)
    along, across, turn = normals * [vary.start_position, vary.start_position, vary.start_heading]
    c, s = math.cos(headings[0]), math.sin(headings[0])
    offset = (c * along - s * across, s * along + c * across, turn)
    driven = drive_along(
        reference, FollowSettings(), controller, seed=seed, run=run, offset=offset
    )
    first_ns = round(motion.start * 1e9)
    return OdometryMotion(driven.truth(first_ns), origin_ns=0, velocity='twist')
