# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Health of judge_node: levels, one short message, news by code, and refusals that end."""

from __future__ import annotations

import math

import pytest
from judge_examples import imu, stamps

from sim2real_eval.judge.robot_localization.advice import NO_MESSAGE
from sim2real_eval.judge.robot_localization.configuration import FilterConfig
from sim2real_eval.judge.robot_localization.health import (
    DISABLED,
    ERROR,
    INPUT_SILENT,
    MESSAGES_REFUSED,
    NO_ESTIMATE,
    NOT_FINITE,
    OK,
    SEVERAL_PUBLISHERS,
    TOGGLED_OFF,
    WARN,
    JudgeHealth,
    level_of,
)
from sim2real_eval.judge.robot_localization.live import LiveJudge
from sim2real_eval.recording.metadata import FrameTree
from sim_sensors.core.shipped import config_path

NS = 10**9
LEVEL = (0.0, 0.0, 0.0, 1.0)


class Situation:
    """Health of a judge whose clock and steady time are those of a test, s."""

    def __init__(self) -> None:
        config = FilterConfig.from_file(config_path('judge', 'clean.yaml'))
        self.live = LiveJudge(config, None, FrameTree((), assume_identity=True))
        self.now = 0.0
        self.health = JudgeHealth(self.live, clock=lambda: self.now)

    def codes(self, publishers: dict[str, int] | None = None) -> list[str]:
        findings = self.health.findings(int(self.now * NS), publishers or {})
        assert len(self.health.message(findings)) <= 80
        return [finding.code for finding in findings]

    def estimate(self, seconds: float) -> None:
        """Publish estimates for some seconds, and report once a second."""
        end = self.now + seconds
        while self.now < end:
            self.now += 0.5
            self.health.count_estimate(LEVEL, int(self.now * NS))
            self.codes()


@pytest.fixture
def situation() -> Situation:
    return Situation()


def test_diagnostics_have_the_heading_of_the_newest_estimate_in_degrees(
    situation: Situation,
) -> None:
    health = situation.health
    assert 'heading [deg]' not in dict(health.values())
    health.count_estimate((0.0, 0.0, math.sin(0.4), math.cos(0.4)), 1)
    angle = math.radians(15)
    health.count_estimate((0.0, 0.0, -math.sin(angle), math.cos(angle)), 2)
    assert dict(health.values())['heading [deg]'] == '-30.0'
    assert dict(health.values())['published'] == 2


def test_the_level_is_ok_while_the_judge_starts_and_an_error_if_no_estimate_comes(
    situation: Situation,
) -> None:
    health = situation.health
    assert situation.codes() == []
    reasons = []
    for step in ('waits for /clock', 'no message', 'no measurement', 'the clock stands'):
        situation.now += 6.0
        now_ns = 0 if step == 'waits for /clock' else 5 * NS
        if step == 'no measurement':
            health.count_received('imu0')
        if step == 'the clock stands':
            health.count_estimate(LEVEL, 5 * NS)
            situation.live._filter.times[0] = 1
            situation.now += 6.0
        findings = health.findings(now_ns, {})
        assert findings[0].kind is NO_ESTIMATE
        assert level_of(findings) == ERROR
        reasons.append(findings[0].words['reason'])
    assert len(set(reasons)) == 4
    health.count_estimate(LEVEL, 6 * NS)
    assert NO_ESTIMATE.code not in situation.codes()
    health.count_estimate((math.nan,) * 4, 7 * NS)
    assert situation.codes()[0] == NOT_FINITE.code


def test_a_silent_input_is_a_warning_after_five_seconds_and_only_then(
    situation: Situation,
) -> None:
    situation.estimate(4.0)
    assert situation.codes() == []
    situation.estimate(2.0)
    codes = situation.codes()
    assert codes == [NO_MESSAGE.code] * 2
    assert level_of(situation.health.findings(int(situation.now * NS), {})) == WARN


def test_an_input_that_has_sent_messages_is_silent_and_not_absent(situation: Situation) -> None:
    live = situation.live
    live.start(NS)
    messages = imu(stamps(100, 0.3, NS))
    live.receive('imu0', messages.take(slice(0, 10)))
    live.tick(2 * NS)
    situation.estimate(4.0)
    situation.estimate(6.0)
    codes = situation.codes()
    assert (codes.count(INPUT_SILENT.code), codes.count(NO_MESSAGE.code)) == (1, 1)


def test_a_finding_is_news_once_until_it_has_cleared(situation: Situation) -> None:
    health = situation.health
    health.count_estimate(LEVEL, 1)

    def news(count: int) -> list[str]:
        findings = health.findings(1, {'imu/data': count})
        return [finding.code for finding in health.news(findings)]

    assert news(2) == [SEVERAL_PUBLISHERS.code]
    # Another number is not another finding.
    assert news(3) == []
    assert news(1) == []
    assert news(2) == [SEVERAL_PUBLISHERS.code]


@pytest.mark.parametrize('is_rare', [False, True], ids=['input', 'set_pose'])
def test_a_refusal_ends(situation: Situation, is_rare: bool) -> None:
    """5 s after the last one; for an input, a valid message must also arrive."""
    health = situation.health
    reasons = [f'stamped {ahead} s ahead' for ahead in range(12, 20)]
    news = [health.count_refused('imu0', reason, is_rare=is_rare) for reason in reasons]
    assert news == [True] + [False] * 7
    assert situation.codes() == [MESSAGES_REFUSED.code]
    situation.estimate(4.5)
    assert MESSAGES_REFUSED.code in situation.codes()
    situation.estimate(1.0)
    assert (MESSAGES_REFUSED.code in situation.codes()) != is_rare
    health.count_accepted('imu0')
    assert MESSAGES_REFUSED.code not in situation.codes()
    assert health.count_refused('imu0', 'again', is_rare=is_rare)
    assert health.summary([])['refused'] == {'imu0': 9}


def test_what_the_user_switched_off_is_a_warning(situation: Situation) -> None:
    health, live = situation.health, situation.live
    health.count_estimate(LEVEL, 1)
    live.processing = False
    assert situation.codes() == [TOGGLED_OFF.code]
    live.enabled = False
    assert situation.codes() == [DISABLED.code]
    situation.now += 60.0
    assert level_of(health.findings(1, {})) == WARN
    live.enabled = live.processing = True
    health.count_estimate(LEVEL, int(situation.now * NS))
    assert level_of([]) == OK
    assert health.message([]) == 'judging'


def test_a_reset_forgets_the_counts_of_the_past(situation: Situation) -> None:
    """Otherwise counts that begin anew would be compared with larger ones."""
    situation.estimate(20.0)
    situation.live.reset()
    situation.health.count_reset('requested')
    assert situation.codes() == []
    assert level_of(situation.health.findings(int(situation.now * NS), {})) == OK
