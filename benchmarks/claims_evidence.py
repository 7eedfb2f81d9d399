# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Claims about evidence: the check of truth, corners of a camera, blocks of recordings."""

from __future__ import annotations

from claim import Claim

_UNCERTAINTY = 'docs/explanation/uncertainty.md'


def _drive(what: str, figure: str, high: float, low: float, *printed: str) -> Claim:
    return Claim(
        f'drive0708, {what}', 'exact permutations', 'drive_blocks', figure, high, low,
        stated=tuple((_UNCERTAINTY, words) for words in printed),
    )  # fmt: skip


BLOCKS = (
    Claim(
        'identical sensors, 8 drives of 4 segments: called different', 'known distribution',
        'blocks',
        'without blocks', 0.45, 0.25, stated=((_UNCERTAINTY, 'in 31 % of studies'),),
    ),
    Claim(
        'the same with `block`, nominal 5 %', 'known distribution', 'blocks', 'with blocks', 0.08,
        0.02,
        stated=((_UNCERTAINTY, 'in 5.5 % with them'),),
    ),
    Claim(
        'the same with other drives on either side', 'known distribution', 'blocks',
        'with blocks, unpaired', 0.08, 0.02,
    ),
    *(
        Claim(
            f'sensors that differ by 15 %, 8 {pairs} of 4 segments: coverage of 95 % intervals',
            'known distance', 'blocks', f'{figure}, covers', 1.0, 0.93,
        )
        for pairs, figure in (
            ('pairs of drives', 'with blocks'), ('drives a side', 'with blocks, unpaired')
        )
    ),
)  # fmt: skip

CAMERA = (
    Claim(
        'noise of features found by `compare`, 100 frames, relative', 'known noise',
        'test_compare_features.py::'
        'test_noise_misses_and_mismatches_of_features_equal_those_of_the_model', 'noise', 0.03,
    ),
    Claim(
        'corners of a board: RMSE over that of a camera model with their noise',
        'OpenCV, 6 settings', 'board', 'RMSE', 1.8, 0.9,
    ),
    Claim(
        'the same: 1 - correlation of detected and true corners', 'OpenCV, 6 settings', 'board',
        '1 - R', 3e-6,
    ),
    Claim(
        'the same: missed, less those of the model', 'OpenCV, 6 settings', 'board', 'missed',
        0.0, -0.3, '%',
    ),
)  # fmt: skip

RECORDINGS = (
    Claim(
        'check of the truth, 20 straight runs of 30 s: 3 % planted in the speed', 'known error',
        'test_truth_speed.py::'
        'test_the_speed_error_shared_by_scattered_runs_is_inside_the_interval',
        '1.03', 0.0305, 0.0295,
    ),
    _drive('12 segments as independent: p-values', 'p_value, blocks of 1', 5.5e-4, 4.5e-4,
           'with p = 0.0005'),
    _drive('blocks of two: p-values', 'p_value, blocks of 2', 0.0315, 0.0305,
           'in blocks of two with 0.031'),
    _drive('blocks of three: lower ends of the intervals', 'low, blocks of 3', 0.0, 0.0,
           'both intervals reach 0'),
)  # fmt: skip
