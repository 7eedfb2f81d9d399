# SPDX-License-Identifier: Apache-2.0
"""How often a study calls the nearest model distinguishable: equal sensors, and a noisy IMU.

Drives of a stand-in are judged once as the real side, several times with equal sensors, and once
with an IMU that is three times as noisy. A study is a selection of these drives. Segments of a
block are drives of neighbouring RMSE, chosen apart for each side.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import table, write

from sim2real_eval.common.workers import Workers
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.metrics.interval import ScoredRuns
from sim2real_eval.metrics.options import REAL, MetricOptions
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.study.options import StudyOptions
from sim2real_eval.study.outcome import StudyOutcome, StudyRun
from sim2real_eval.study.plan import StudyPlan
from sim2real_eval.study.recordings import PathDrive, StandIn, StudyRecording
from sim2real_eval.study.runner import run_study
from sim2real_eval.study.secondary_results import metric_tables
from sim2real_eval.study.study_file import StudyFile
from sim2real_eval.study.variants import StudyJudge
from sim_sensors import load_gps, load_imu
from sim_sensors.core.seeding import stream
from sim_sensors.core.shipped import config_path

JUDGES = ('clean', 'paper_released')
EQUAL = 5  # models with the sensors of the real side
NOISE = 3.0
