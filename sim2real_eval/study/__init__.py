# SPDX-License-Identifier: Apache-2.0
"""Studies: real recordings times sensor models times judges, kept run by run."""

from __future__ import annotations

from sim2real_eval.study.outcome import StudyOutcome
from sim2real_eval.study.run import RunKey, StudyRun
from sim2real_eval.study.signals import EstimateSignals

__all__ = ['EstimateSignals', 'RunKey', 'StudyOutcome', 'StudyRun']
