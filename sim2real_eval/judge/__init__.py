# SPDX-License-Identifier: Apache-2.0
"""The judge: robot_localization behaviour, offline and exactly repeatable."""

from sim2real_eval.judge.clock import Clock, ReplayOptions
from sim2real_eval.judge.configuration import FilterConfig
from sim2real_eval.judge.embedded import judge
from sim2real_eval.judge.errors import JudgeError
from sim2real_eval.judge.judged import Estimate, GpsPosition, JudgedRun, PartCount
from sim2real_eval.judge.live import LiveJudge
from sim2real_eval.judge.many import judge_all
from sim2real_eval.judge.navsat_configuration import NavsatConfig

__all__ = [
    'Clock',
    'Estimate',
    'FilterConfig',
    'GpsPosition',
    'JudgeError',
    'JudgedRun',
    'LiveJudge',
    'NavsatConfig',
    'PartCount',
    'ReplayOptions',
    'judge',
    'judge_all',
]
