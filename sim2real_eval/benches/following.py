# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Recorded drives followed by a simulated robot: waypoints of a recording, and results."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from sim2real_eval.common.findings import Finding, RecordingError
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.truth import (
    local_frame_at_first_fix,
    locate_truth,
    select_valid_fixes,
)
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import TwinMaker
from sim_sensors.core.errors import Remark
from sim_sensors.core.measurements import FixArray, MessageArray, OdometryArray
from sim_sensors.following.follower import FollowSettings, SimulatedDrive, drive_along
from sim_sensors.following.tracking import ErrorStatistics, ReferenceMotion
from sim_sensors.motion.motions import START_NS
from sim_sensors.motion.planar import heading_of
from sim_sensors.motion.vehicles import DifferentialDrive
from sim_sensors.motion.waypoints import Waypoints, repair_waypoints, thin_samples
from sim_sensors.world.geodesy import DEFAULT_ORIGIN, LocalFrame
from sim_sensors.world.world import World
from .settings import WAYPOINTS


@dataclasses.dataclass(frozen=True, eq=False)
class FollowedRun:
    """A reference and the drive of each controller along it."""

    name: str
    start_ns: int  # stamp of the first waypoint
    reference: ReferenceMotion
    drives: Mapping[str, SimulatedDrive]  # by controller
    robot: DifferentialDrive = dataclasses.field(default_factory=DifferentialDrive)
    origin: LocalFrame = DEFAULT_ORIGIN  # position of the first waypoint on the Earth

    def statistics(self) -> dict[str, dict[str, ErrorStatistics]]:
        """Return the statistics of each error by controller."""
        return {name: drive.errors.statistics() for name, drive in self.drives.items()}


def waypoints_of(
    recording: Recording, source: str = 'auto', *, rate: float = 5.0
) -> tuple[Waypoints, int]:
    """Return the waypoints of a recording and the stamp of the first.

    The truth gives position and yaw. The GPS gives the position relative to the first fix, with
    the course over ground as the heading. Both are thinned to at most `rate` waypoints per
    second. `source` is truth, gps, or auto (the truth if there is one).

    Raises RecordingError when the recording has no such topic. Raises MotionError when fewer than
    two waypoints are left.
    """
    source, array = _source(recording, source)
    start_ns = int(array.stamp_ns[0])
    since = np.asarray((array.stamp_ns - start_ns) * 1e-9, dtype=np.float64)
    chosen = array.take(thin_samples(since, rate))
    time = (chosen.stamp_ns - start_ns) * 1e-9
    where = f'{recording.name}, waypoints from {source}'
    if isinstance(chosen, OdometryArray):
        heading = np.array([heading_of(*q) for q in chosen.orientation.tolist()])
        x, y = chosen.position[:, 0], chosen.position[:, 1]
        waypoints = repair_waypoints(time, x, y, np.unwrap(heading), where=where)
    else:
        assert isinstance(chosen, FixArray)
        enu = local_frame_at_first_fix(chosen).to_enu(
            chosen.latitude, chosen.longitude, chosen.altitude
        )
        waypoints = repair_waypoints(time, enu[:, 0], enu[:, 1], where=where)
        note = 'waypoints come from gps: the heading is the course over ground, always forwards'
        waypoints = dataclasses.replace(waypoints, notes=(*waypoints.notes, Remark(note)))
    return waypoints, start_ns + round(waypoints.origin[2] * 1e9)


def waypoint_findings(waypoints: Waypoints) -> list[Finding]:
    """Return the repairs of waypoints as findings."""
    return [WAYPOINTS(problem=note) for note in waypoints.notes]


def place_of(
    recording: Recording,
    waypoints: Waypoints,
    source: str = 'auto',
    *,
    unknown: LocalFrame = DEFAULT_ORIGIN,
) -> LocalFrame:
    """Return the position of the first waypoint of a recording on the Earth.

    It has the accuracy of the first fix; `unknown` is returned for a recording without fixes. The
    waypoints are those of `waypoints_of` with the same source, or a part of them.
    """
    _, array = _source(recording, source)
    x, y, since = waypoints.origin
    if isinstance(array, FixArray):
        frame = local_frame_at_first_fix(array)
        height = frame.to_enu(array.latitude, array.longitude, array.altitude)[:, 2]
    else:
        assert isinstance(array, OdometryArray)
        fixes = recording.gps
        if fixes is None or not len(select_valid_fixes(fixes)):
            return unknown
        frame = locate_truth(array, fixes)
        height = array.position[:, 2]
    z = np.interp(since, (array.stamp_ns - array.stamp_ns[0]) * 1e-9, height)
    latitude, longitude, altitude = frame.to_geodetic(np.array([[x, y, z]]))
    return LocalFrame(float(latitude[0]), float(longitude[0]), float(altitude[0]))


def _source(recording: Recording, source: str) -> tuple[str, MessageArray]:
    """Return the source of the waypoints and its valid messages."""
    if source == 'auto':
        source = 'gps' if recording.truth is None and recording.gps is not None else 'truth'
    array = recording.require(source)
    if isinstance(array, FixArray):
        array = select_valid_fixes(array)
    if not len(array):
        raise RecordingError(f'{recording.path or recording.name}: no {source} to make waypoints')
    return source, array


def follow_waypoints(
    name: str,
    waypoints: Waypoints,
    settings: FollowSettings,
    controllers: Sequence[str],
    *,
    seed: int = 0,
    start_ns: int = START_NS,
    origin: LocalFrame = DEFAULT_ORIGIN,
) -> FollowedRun:
    """Let a simulated robot follow waypoints, once with each controller."""
    reference = ReferenceMotion(waypoints, settings.interpolation)
    drives = {
        controller: drive_along(reference, settings, controller, seed=seed, run=name)
        for controller in controllers
    }
    return FollowedRun(name, start_ns, reference, drives, settings.robot, origin)


def driven_recording(
    run: FollowedRun,
    controller: str,
    twin: Twin,
    world: World | None = None,
    *,
    seed: int,
    scenario: str,
) -> Recording:
    """Return the drive as a recording: truth at 100 Hz and the sensors of `twin`, if any.

    `world` has the coordinates of the drive, with the origin of the run. Name and stamps are
    those of the run, so that the drive can be compared with the original recording.
    """
    truth = run.drives[controller].truth(run.start_ns)
    bare = Recording.of_truth(truth, run.name, scenario)
    maker = TwinMaker(bare, seed=seed, purpose='recording', origin=run.origin, world=world)
    return maker.make(twin)


def pooled_statistics(runs: Sequence[FollowedRun]) -> dict[str, dict[str, ErrorStatistics]]:
    """Return statistics over all runs by controller, each run weighted by its duration."""
    pooled: dict[str, dict[str, ErrorStatistics]] = {}
    for controller in runs[0].drives:
        errors = [run.drives[controller].errors for run in runs]
        pooled[controller] = {
            name: ErrorStatistics.from_values(
                np.concatenate([getattr(run, name) for run in errors])
            )
            for name in ('distance', 'along', 'across', 'yaw')
        }
    return pooled
