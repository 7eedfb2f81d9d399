# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Small study files."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from sim2real_eval.study.plan import StudyPlan

SMALL: Mapping[str, Any] = {
    'title': 'Small study',
    'recordings': [{'stand_in': {'scenarios': ['line'], 'runs': 2, 'duration': 4.0}}],
    'models': {'gps': ['ch_gauss', 'ch_rw'], 'imu': ['chrono']},
    'judges': ['paper_released'],
}
"""Two stand-ins of 4 s and two models under one judge: six runs."""


def write_study_file(folder: Path, changes: Mapping[str, Any] | None = None) -> Path:
    """Write a small study file; keys that are changed to None are left out."""
    content = {**copy.deepcopy(dict(SMALL)), **(changes or {})}
    content = {key: value for key, value in content.items() if value is not None}
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / 'study.yaml'
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding='utf-8')
    return path


def small_plan(folder: Path, changes: Mapping[str, Any] | None = None) -> StudyPlan:
    """Return the plan of a small study file, which is written to the folder."""
    return StudyPlan.load(write_study_file(folder, changes))
