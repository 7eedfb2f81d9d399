# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Runs of a study as rosbag2 folders with mcap, for Foxglove, PlotJuggler and ROS 2."""

from __future__ import annotations

import itertools
import re
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np

from sim2real_eval.common.results import check_result_folder, fresh_folder, write_json
from sim2real_eval.metrics.series import speed
from sim2real_eval.recording.cdr import encode
from sim2real_eval.recording.message_types import MESSAGE_TYPES
from sim2real_eval.recording.writing import write_bag
from sim_sensors.core import rotations
from sim_sensors.core.measurements import FloatArray, IntArray, OdometryArray
from .outcome import StudyOutcome
from .run import EstimateSignals

START_NS = 1_000_000_000_000
"""Stamp of the first ground truth in every bag, 1000 s.

A study keeps only times since then; estimates may be earlier, and viewers ignore a stamp of 0.
"""

_MARK = 'bags.json'
_FLOAT = b'\x00\x01\x00\x00'  # little-endian CDR; a Float64 follows at once
_WORLD, _BASE = 'map', 'base_link'
_UNSAFE = re.compile(r'[^\w.+@-]+')


def check_bags(folder: str | Path, *, overwrite: bool) -> None:
    """Raise Sim2RealError if bags may not be written into a folder.

    It may hold older bags of a study if `overwrite` is True.
    """
    check_result_folder(folder, _MARK, overwrite=overwrite)


def write_bags(
    outcome: StudyOutcome,
    folder: str | Path,
    *,
    overwrite: bool = False,
    progress: Callable[[], None] | None = None,
) -> list[Path]:
    """Write every run as a bag, `<judge>/<model>/<recording>_<repetition>/`.

    Topics are /truth/odometry and /estimate/odometry (nav_msgs/Odometry in `map` and `base_link`,
    with diagonal covariances), and as std_msgs/Float64 /truth/speed, /estimate/speed,
    /error/speed, /error/position and /stated/position (horizontal, m), /error/velocity and
    /stated/velocity (horizontal, body frame, m/s). Runs without positions have only speeds. The
    file bags.json lists the run of each bag. Equal studies give equal bytes.

    Returns
    -------
    list of Path
        Bags in the order of the runs; `progress` is called after each.

    Raises
    ------
    Sim2RealError
        When the folder exists and may not be replaced, or signals cannot be read.
    """
    component = str(outcome.record.get('component', 'horizontal'))
    places: list[Path] = []
    with fresh_folder(folder, _MARK, overwrite=overwrite) as fresh:
        index = []
        for run in outcome.runs:
            key = run.key
            names = (key.judge, key.model, f'{key.recording}_{key.repetition}')
            place = _unused_path(Path(*map(_safe, names)), places)
            places.append(place)
            (fresh / place).parent.mkdir(parents=True, exist_ok=True)
            contents = make_topics(outcome.signals(key), component)
            write_bag(
                fresh / place, (_serialise(topic, content) for topic, content in contents.items())
            )
            index.append({'bag': place.as_posix(), **key._asdict(), 'scenario': run.scenario})
            if progress is not None:
                progress()
        write_json(
            fresh / _MARK,
            {
                'title': outcome.record.get('title'),
                'synthetic': bool(outcome.record.get('synthetic')),
                'start_ns': START_NS,
                'bags': index,
            },
        )
    return [Path(folder) / place for place in places]


def make_topics(
    signals: EstimateSignals, component: str
) -> dict[str, OdometryArray | tuple[IntArray, FloatArray]]:
    """Return the contents of a bag by topic: odometry, or stamps and numbers."""
    time, true_time = signals.time, signals.true_time
    has_velocity, has_position, has_truth = (
        np.isfinite(values).all(axis=1)
        for values in (signals.velocity, signals.position, signals.true_position)
    )
    has_position &= has_velocity
    has_truth &= has_position
    true_velocity = _interpolate(time, true_time, signals.true_velocity)
    result: dict[str, OdometryArray | tuple[IntArray, FloatArray]] = {}
    if has_truth.any():
        result['/truth/odometry'] = _odometry(
            time[has_truth],
            signals.true_position[has_truth],
            _interpolate_orientation(time[has_truth], true_time, signals.true_orientation),
            true_velocity[has_truth],
        )
    if has_position.any():
        result['/estimate/odometry'] = _odometry(
            time[has_position],
            signals.position[has_position],
            signals.orientation[has_position],
            signals.velocity[has_position],
            signals.position_sigma[has_position],
            signals.velocity_sigma[has_position],
        )
    estimate = speed(signals.velocity[has_velocity], signals.orientation[has_velocity], component)
    truth = speed(signals.true_velocity, signals.true_orientation, component)
    result['/truth/speed'] = (_stamps(true_time), truth)
    result['/estimate/speed'] = (_stamps(time[has_velocity]), estimate)
    error = estimate - np.interp(time[has_velocity], true_time, truth)
    result['/error/speed'] = (_stamps(time[has_velocity]), error)
    for name, values in (
        ('error/position', signals.position - signals.true_position),
        ('stated/position', signals.position_sigma),
        ('error/velocity', signals.velocity - true_velocity),
        ('stated/velocity', signals.velocity_sigma),
    ):
        size = np.linalg.norm(values[:, :2], axis=1)
        selected = np.isfinite(size) & has_position
        if selected.any():
            result[f'/{name}'] = (_stamps(time[selected]), size[selected])
    return result


def _serialise(
    topic: str, content: OdometryArray | tuple[IntArray, FloatArray]
) -> tuple[str, str, IntArray, list[bytes]]:
    if isinstance(content, OdometryArray):
        kind = MESSAGE_TYPES['nav_msgs/msg/Odometry']
        return topic, kind.name, content.stamp_ns, encode(kind, content, topic)
    stamps, values = content
    data = [_FLOAT + struct.pack('<d', value) for value in values.tolist()]
    return topic, 'std_msgs/msg/Float64', stamps, data


def _stamps(time: FloatArray) -> IntArray:
    return START_NS + np.rint(time * 1e9).astype(np.int64)


def _odometry(
    time: FloatArray,
    position: FloatArray,
    orientation: FloatArray,
    velocity: FloatArray,
    position_sigma: FloatArray | None = None,
    velocity_sigma: FloatArray | None = None,
) -> OdometryArray:
    stamps = _stamps(time)
    return OdometryArray(
        stamp_ns=stamps,
        arrival_ns=stamps,
        frame=_WORLD,
        child_frame=_BASE,
        position=position,
        orientation=orientation,
        linear_velocity=velocity,
        # Studies do not keep angular velocities.
        angular_velocity=np.zeros_like(velocity),
        pose_covariance=_diagonal(position_sigma, len(time)),
        twist_covariance=_diagonal(velocity_sigma, len(time)),
    )


def _diagonal(sigma: FloatArray | None, count: int) -> FloatArray:
    covariance = np.zeros((count, 6, 6))
    if sigma is not None:
        covariance[:, range(3), range(3)] = np.square(sigma)
    return covariance


def _interpolate_orientation(
    time: FloatArray, true_time: FloatArray, orientation: FloatArray
) -> FloatArray:
    """Return orientations at other times, interpolated linearly and normalized."""
    quaternions = _interpolate(time, true_time, rotations.continuous(orientation))
    return np.asarray(quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True))


def _interpolate(time: FloatArray, known_time: FloatArray, values: FloatArray) -> FloatArray:
    return np.stack([np.interp(time, known_time, column) for column in values.T], axis=1)


def _safe(label: str) -> str:
    """Return a label with characters that are allowed in paths on every system."""
    return _UNSAFE.sub('_', label).strip('.')[:100] or '_'


def _unused_path(path: Path, used: list[Path]) -> Path:
    """Return a path, with a number added if it is used already."""
    alternatives = (path.with_name(f'{path.name}_{number}') for number in itertools.count(2))
    return next(other for other in itertools.chain([path], alternatives) if other not in used)
