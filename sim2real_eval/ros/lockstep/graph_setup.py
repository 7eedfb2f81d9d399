# SPDX-License-Identifier: Apache-2.0
"""A judge that runs on a graph of its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from sim2real_eval.judge import JudgedRun
from sim2real_eval.judge_setup import JudgeSetup
from sim2real_eval.recording import Recording

__all__ = ['GraphJudgeSetup']


@dataclasses.dataclass(frozen=True, eq=False)
class GraphJudgeSetup(JudgeSetup):
    """JudgeSetup whose `judge` starts a judge node and feeds it in lockstep.

    Attributes
    ----------
    kind : str
        One of JUDGES.
    navsat_node : str
        `embedded`, or `robot_localization` for the real one at the speed of the wall clock.
    """

    kind: str = 'judge_node'
    navsat_node: str = 'embedded'

    @classmethod
    def load(
        cls,
        config: str | Path,
        navsat_config: str | Path | None = None,
        case: str | Path | None = None,
        *,
        kind: str = 'judge_node',
        navsat_node: str = 'embedded',
    ) -> GraphJudgeSetup:
        """Read a set-up as `JudgeSetup.load`, and see that the judge is installed.

        Raises
        ------
        JudgeError
            When it is not; says what to install.
        """
        raise NotImplementedError

    @property
    def provenance(self) -> Mapping[str, str]:
        """Which judge and which front end made the result."""
        return {'judge': self.kind, 'navsat': self.navsat_node}

    def judge(
        self,
        recording: Recording,
        *,
        start_ns: int | None = None,
        start_heading: float | None = None,
    ) -> JudgedRun:
        """Judge a recording on a graph of its own; parameters as in the base class."""
        raise NotImplementedError
