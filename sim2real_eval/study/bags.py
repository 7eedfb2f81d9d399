# SPDX-License-Identifier: Apache-2.0
"""Runs of a study as rosbag2 folders with mcap, for Foxglove, PlotJuggler and ROS 2."""

from __future__ import annotations

import itertools
import re
import struct
from collections.abc import Callable
from glob import escape
from pathlib import Path
from typing import Any

import numpy as np

from sim2real_eval.common.results import check_result_folder, fresh_folder
from sim2real_eval.common.tables import write_json
from sim2real_eval.metrics.series import speed
from sim2real_eval.recording.cdr import encode
from sim2real_eval.recording.message_types import MESSAGE_TYPES
from sim2real_eval.recording.writing import BAG_FILES, write_bag
from sim_sensors.core import rotations
from sim_sensors.core.measurements import FloatArray, IntArray, OdometryArray
from .outcome import StudyOutcome
from .run import EstimateSignals

START_NS = 1_000_000_000_000
"""Stamp of the first truth in every bag, 1000 s: a study keeps times since then only, estimates
may come before it, and viewers take 0 for no stamp."""

_MARK = 'bags.json'
_FLOAT = b'\x00\x01\x00\x00'  # little-endian CDR; a Float64 follows at once
_WORLD, _BASE = 'map', 'base_link'
_UNSAFE = re.compile(r'[^\w.+@-]+')


def check_bags(folder: str | Path, *, overwrite: bool) -> None:
    """Refuse a folder that would be overwritten; with `overwrite`, one that is not of bags.

    Raises Sim2RealError.
    """
    check_result_folder(folder, _MARK, overwrite=overwrite)


def write_bags(
    outcome: StudyOutcome,
    folder: str | Path,
    *,
    overwrite: bool = False,
    progress: Callable[[], None] | None = None,
) -> list[Path]:
    """Write every run as a bag, `<judge>/<model>/<recording>_<repetition>/`, all or nothing.

    Topics: /truth/odometry and /estimate/odometry (nav_msgs/Odometry, in `map` and `base_link`,
    the covariances diagonal, of the stated deviations), and as std_msgs/Float64 /truth/speed,
    /estimate/speed, /error/speed, /error/position and /stated/position (horizontal, m),
    /error/velocity and /stated/velocity (of the body's horizontal velocity, m/s). Without
    positions there are speeds only. `bags.json` says which bag is which run. Equal studies give
    equal bytes.

    Returns the bags in the order of the runs; `progress` is called after each. Sim2RealError when
    the folder exists and may not be replaced (`overwrite`), or signals cannot be read.
    """
    component = str(outcome.record.get('component', 'horizontal'))
    places: list[Path] = []
    with fresh_folder(folder, _MARK, overwrite=overwrite, older=_bag_files) as fresh:
        index = []
        for run in outcome.runs:
            key = run.key
            names = (key.judge, key.model, f'{key.recording}_{key.repetition}')
            place = _free(Path(*map(_safe, names)), places)
            places.append(place)
            (fresh / place).parent.mkdir(parents=True, exist_ok=True)
            contents = topics(outcome.signals(key), component)
            write_bag(fresh / place, (_serialised(*item) for item in contents.items()))
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


def topics(
    signals: EstimateSignals, component: str
) -> dict[str, OdometryArray | tuple[IntArray, FloatArray]]:
    """Return what is written of a run: odometry, or stamps and numbers, by topic."""
    time, true_time = signals.time, signals.true_time
    sound, known, placed = (
        np.isfinite(values).all(axis=1)
        for values in (signals.velocity, signals.position, signals.true_position)
    )
    known &= sound
    placed &= known
    true_velocity = _between(time, true_time, signals.true_velocity)
    found: dict[str, OdometryArray | tuple[IntArray, FloatArray]] = {}
    if placed.any():
        found['/truth/odometry'] = _odometry(
            time[placed],
            signals.true_position[placed],
            _turned(time[placed], true_time, signals.true_orientation),
            true_velocity[placed],
        )
    if known.any():
        found['/estimate/odometry'] = _odometry(
            time[known],
            signals.position[known],
            signals.orientation[known],
            signals.velocity[known],
            signals.position_sigma[known],
            signals.velocity_sigma[known],
        )
    estimate = speed(signals.velocity[sound], signals.orientation[sound], component)
    truth = speed(signals.true_velocity, signals.true_orientation, component)
    found['/truth/speed'] = (_stamps(true_time), truth)
    found['/estimate/speed'] = (_stamps(time[sound]), estimate)
    error = estimate - np.interp(time[sound], true_time, truth)
    found['/error/speed'] = (_stamps(time[sound]), error)
    for name, values in (
        ('error/position', signals.position - signals.true_position),
        ('stated/position', signals.position_sigma),
        ('error/velocity', signals.velocity - true_velocity),
        ('stated/velocity', signals.velocity_sigma),
    ):
        size = np.linalg.norm(values[:, :2], axis=1)
        there = np.isfinite(size) & known
        if there.any():
            found[f'/{name}'] = (_stamps(time[there]), size[there])
    return found


def _serialised(
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
        # Studies keep no rates of turn.
        angular_velocity=np.zeros_like(velocity),
        pose_covariance=_diagonal(position_sigma, len(time)),
        twist_covariance=_diagonal(velocity_sigma, len(time)),
    )


def _diagonal(sigma: FloatArray | None, count: int) -> FloatArray:
    covariance = np.zeros((count, 6, 6))
    if sigma is not None:
        covariance[:, range(3), range(3)] = np.square(sigma)
    return covariance


def _turned(time: FloatArray, true_time: FloatArray, orientation: FloatArray) -> FloatArray:
    """Return orientations at other times, on the chord between neighbours, of unit length."""
    found = _between(time, true_time, rotations.continuous(orientation))
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True))


def _between(time: FloatArray, known: FloatArray, values: FloatArray) -> FloatArray:
    return np.stack([np.interp(time, known, column) for column in values.T], axis=1)


def _safe(label: str) -> str:
    """Return a label as part of a path on every system."""
    return _UNSAFE.sub('_', label).strip('.')[:100] or '_'


def _bag_files(record: dict[str, Any]) -> list[str]:
    """Return the files of the bags of an older folder, as globs."""
    return [f'{escape(bag["bag"])}/{file}' for bag in record['bags'] for file in BAG_FILES]


def _free(place: Path, taken: list[Path]) -> Path:
    others = (place.with_name(f'{place.name}_{number}') for number in itertools.count(2))
    return next(one for one in itertools.chain([place], others) if one not in taken)
