# SPDX-License-Identifier: Apache-2.0
"""What the judge did with its inputs that changes what its estimate means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sim2real_eval.judge.configuration import FilterConfig, NavsatConfig
from sim2real_eval.judge.judged import PartCount
from sim2real_eval.judge.state import YAW
from sim_sensors.measurements import ImuArray, MessageArray

__all__ = ['input_advice', 'navsat_advice', 'part_advice']

_MOST = 0.5


def _has_no_attitude(imu: ImuArray) -> bool:
    return bool((np.abs(imu.orientation_covariance[:, 0, 0] + 1.0) <= 1e-9).all())


def input_advice(
    config: FilterConfig,
    navsat: NavsatConfig | None,
    sources: Mapping[str, MessageArray | None],
    headings: ImuArray | None,
) -> list[str]:
    """Say what an IMU without orientation means for this configuration, one line each."""
    notes = []
    for source in config.sources:
        imu = sources.get(source.name)
        if not isinstance(imu, ImuArray) or not _has_no_attitude(imu):
            continue
        if source.mask[3:6].any():
            text = (
                f'{source.name} is configured to measure orientation, but {source.topic} carries '
                'none (-1): that part is skipped and attitude comes from the rates alone'
            )
            if source.mask[YAW]:
                text += (
                    ', from a start heading of 0 (east): forward speed is then meaningless and '
                    'accelerations are fused in a wrong direction; `sim2real vepd '
                    '--start-heading` starts with the true heading'
                )
            notes.append(text)
        if source.remove_gravity:
            notes.append(
                f'{source.name} carries no orientation: gravity is removed with the attitude '
                "estimated by the filter, so that attitude's error shows up as acceleration"
            )
    if navsat is not None and headings is not None and _has_no_attitude(headings):
        notes.append(
            'navsat_transform takes its heading from an IMU that carries no orientation (-1): as '
            'in robot_localization the start heading counts as 0 (east), so the estimated track '
            'is turned by the true start heading'
        )
    return notes


def part_advice(parts: Sequence[PartCount]) -> list[str]:
    """Say which inputs the judge hardly used, one line each."""
    notes = []
    for part in parts:
        judged = part.fused + part.rejected
        if judged and part.rejected > _MOST * judged:
            notes.append(
                f'{part.name} ({part.topic}): the Mahalanobis gate refused {part.rejected} of '
                f'{judged} measurements, so the estimate hardly depends on this sensor'
            )
        if part.older:
            notes.append(
                f'{part.name} ({part.topic}): {part.older} of {part.received} messages are older '
                'than the one before and were refused'
            )
    return notes


def navsat_advice(fixes: int, used: int, lost: int, frequency: float) -> list[str]:
    """Say how many fixes the navsat timer dropped, one line."""
    if fixes and used == 0:
        return [f'navsat_transform passed on none of {fixes} fixes: it had no heading or odometry']
    # One is normal: the tick that fixes the transform publishes nothing.
    if lost > 1:
        return [
            f'navsat_transform ({frequency:g} Hz timer) dropped {lost} of {fixes} fixes that a '
            'newer one overtook before its tick'
        ]
    return []
