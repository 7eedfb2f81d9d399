# SPDX-License-Identifier: Apache-2.0
"""Real judge nodes fed message by message and tick by tick, waiting for what they answer."""

from sim2real_eval.ros.lockstep.conductor import Conductor
from sim2real_eval.ros.lockstep.delivery import Feed, PendingMessage, RecordedFeed
from sim2real_eval.ros.lockstep.graph_setup import GraphJudgeSetup
from sim2real_eval.ros.lockstep.process import JUDGES, JudgeProcess
from sim2real_eval.ros.lockstep.side import Side

__all__ = [
    'JUDGES',
    'Conductor',
    'Feed',
    'GraphJudgeSetup',
    'JudgeProcess',
    'PendingMessage',
    'RecordedFeed',
    'Side',
]
