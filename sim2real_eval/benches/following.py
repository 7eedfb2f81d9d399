# SPDX-License-Identifier: Apache-2.0
"""Recorded drives, driven again by a simulated robot: waypoints from a recording, and results."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from sim2real_eval.common.errors import RecordingError
from sim2real_eval.common.findings import Finding
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.truth import frame_at_first, truth_origin, valid_fixes
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import TwinMaker
from sim_sensors.core.errors import Remark
from sim_sensors.core.measurements import FixArray, MessageArray, OdometryArray
from sim_sensors.following.follower import FollowSettings, SimulatedDrive, drive_along
from sim_sensors.following.reference import ErrorStatistics, ReferenceMotion
from sim_sensors.motion.motions import START_NS
from sim_sensors.motion.planar import heading_of
from sim_sensors.motion.waypoints import Waypoints, repaired_waypoints, thinned
from sim_sensors.world.geodesy import DEFAULT_ORIGIN, LocalFrame
from sim_sensors.world.world import World
from .findings import WAYPOINTS

SOURCES = ('auto', 'truth', 'gps')
"""Where waypoints come from: `auto` takes the truth where there is one."""


@dataclasses.dataclass(frozen=True, eq=False)
class FollowedRun:
    """One reference and what each controller made of it."""

    name: str  # of the run
    start_ns: int  # stamp of the first waypoint
    reference: ReferenceMotion
    drives: Mapping[str, SimulatedDrive]  # by controller
    origin: LocalFrame = DEFAULT_ORIGIN  # where on the Earth the first waypoint is

    def statistics(self) -> dict[str, dict[str, ErrorStatistics]]:
        """Return the statistics of each error by controller."""
        return {name: drive.errors.statistics() for name, drive in self.drives.items()}


def waypoints_of(
    recording: Recording, source: str = 'auto', *, rate: float = 5.0
) -> tuple[Waypoints, int]:
    """Return the waypoints of a recording and the stamp of the first.

    From the truth: position and yaw. From the GPS: position of all fixes east and
    north of the first, and the course over ground as the heading. Both are thinned to the first
    sample of each period: `rate` waypoints per second, at most. `source` is one of `SOURCES`.

    Raises RecordingError when the recording has no such topic. Raises MotionError when fewer than
    two waypoints are left.
    """
    source, array = _source(recording, source)
    start_ns = int(array.stamp_ns[0])
    since = np.asarray((array.stamp_ns - start_ns) * 1e-9, dtype=np.float64)
    chosen = array.take(thinned(since, rate))
    time = (chosen.stamp_ns - start_ns) * 1e-9
    where = f'{recording.name}, waypoints from {source}'
    if isinstance(chosen, OdometryArray):
        heading = np.array([heading_of(*q) for q in chosen.orientation.tolist()])
        x, y = chosen.position[:, 0], chosen.position[:, 1]
        waypoints = repaired_waypoints(time, x, y, np.unwrap(heading), where=where)
    else:
        assert isinstance(chosen, FixArray)
        enu = frame_at_first(chosen).to_enu(chosen.latitude, chosen.longitude, chosen.altitude)
        waypoints = repaired_waypoints(time, enu[:, 0], enu[:, 1], where=where)
        note = 'waypoints come from gps: the heading is the course over ground, always forwards'
        waypoints = dataclasses.replace(waypoints, notes=(*waypoints.notes, Remark(note)))
    return waypoints, start_ns + round(waypoints.origin[2] * 1e9)


def waypoint_findings(waypoints: Waypoints) -> list[Finding]:
    """Return what was repaired in waypoints."""
    return [WAYPOINTS(problem=note) for note in waypoints.notes]


def place_of(
    recording: Recording,
    waypoints: Waypoints,
    source: str = 'auto',
    *,
    unknown: LocalFrame = DEFAULT_ORIGIN,
) -> LocalFrame:
    """Return where on the Earth the first of the waypoints of a recording is.

    The same place as on the recorded drive, to the accuracy of its first fix; `unknown` for a
    recording without fixes. The waypoints are those of `waypoints_of` with the same source,
    perhaps cut.
    """
    _, array = _source(recording, source)
    x, y, since = waypoints.origin
    if isinstance(array, FixArray):
        frame = frame_at_first(array)
        height = frame.to_enu(array.latitude, array.longitude, array.altitude)[:, 2]
    else:
        assert isinstance(array, OdometryArray)
        fixes = recording.gps
        if fixes is None or not len(valid_fixes(fixes)):
            return unknown
        frame = truth_origin(array, fixes)
        height = array.position[:, 2]
    z = np.interp(since, (array.stamp_ns - array.stamp_ns[0]) * 1e-9, height)
    latitude, longitude, altitude = frame.to_geodetic(np.array([[x, y, z]]))
    return LocalFrame(float(latitude[0]), float(longitude[0]), float(altitude[0]))


def _source(recording: Recording, source: str) -> tuple[str, MessageArray]:
    """Return where waypoints come from, and its messages of use."""
    if source == 'auto':
        source = 'gps' if recording.truth is None and recording.gps is not None else 'truth'
    array = recording.require(source)
    if isinstance(array, FixArray):
        array = valid_fixes(array)
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
    return FollowedRun(name, start_ns, reference, drives, origin)


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

    They are in `world`, whose coordinates are those of the drive, at the origin of the run.

    Its name is that of the run, its stamps are those of the run, so that it can be held against
    the recording that the waypoints came from.
    """
    truth = run.drives[controller].truth(run.start_ns)
    bare = Recording.of_truth(truth, run.name, scenario)
    maker = TwinMaker(bare, seed=seed, purpose='recording', origin=run.origin, world=world)
    return maker.make(twin)


def pooled_statistics(runs: Sequence[FollowedRun]) -> dict[str, dict[str, ErrorStatistics]]:
    """Return, by controller, statistics over all runs: each run counts by its duration."""
    pooled: dict[str, dict[str, ErrorStatistics]] = {}
    for controller in runs[0].drives:
        errors = [run.drives[controller].errors for run in runs]
        pooled[controller] = {
            name: ErrorStatistics.of(np.concatenate([getattr(each, name) for each in errors]))
            for name in ('distance', 'along', 'across', 'yaw')
        }
    return pooled
