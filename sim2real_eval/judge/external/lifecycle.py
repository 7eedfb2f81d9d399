# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Lifecycle nodes: configure and activate them."""

from __future__ import annotations

import contextlib
import time
from typing import Any

from rclpy.node import Node

from sim2real_eval.common.findings import JudgeError
from .connections import interface_class
from .waits import RETRY_S, Wait, Work, call_service

_TRANSITIONS = {'unconfigured': 1, 'inactive': 3}
"""Transitions to `active` by state: configure and activate."""


def activate(node: Node, name: str, owner: str, timeout_s: float) -> Work:
    """Bring a lifecycle node to the state `active`.

    JudgeError, which names the estimator `owner`, if a transition fails or takes too long.
    """
    key = 'ready.lifecycle'
    change_type = interface_class('lifecycle_msgs/srv/ChangeState', key)
    state_type = interface_class('lifecycle_msgs/srv/GetState', key)
    get_state = node.create_client(state_type, f'{name}/get_state')
    change_state = node.create_client(change_type, f'{name}/change_state')
    with contextlib.ExitStack() as closing:
        for client in (get_state, change_state):
            closing.callback(node.destroy_client, client)
        yield Wait(
            lambda: get_state.service_is_ready() and change_state.service_is_ready(),
            f'the lifecycle services of {name}',
        )
        end = time.monotonic() + timeout_s
        previous, transition, unchanged = '', None, 0
        while True:
            # Checked before the request, so that the state is that after the transition.
            has_ended = transition is not None and transition.done()
            answer = yield from call_service(
                get_state, state_type.Request(), f'the state of {name}'
            )
            state = answer.current_state.label
            if state == 'active':
                return
            if transition is not None and has_ended:
                # If a request was repeated because it was late, the second one is refused.
                is_refused = not transition.result().success
                steps = _TRANSITIONS
                if is_refused and steps.get(state, 0) <= steps[previous]:
                    problem = f'{name} does not leave the state {previous}'
                    raise JudgeError(f'{owner}: {problem}')
                transition = None
            if state == 'finalized' or time.monotonic() > end:
                raise JudgeError(f'{owner}: {name} is {state}; must become active')
            # By its second answer after a request, a node has processed that request.
            unchanged = unchanged + 1 if state == previous else 0
            if state in _TRANSITIONS and (transition is None or unchanged > 1):
                request = change_type.Request()
                request.transition.id = _TRANSITIONS[state]
                previous, unchanged = state, 0
                transition = change_state.call_async(request)
            yield _wait_or_retry(transition, f'a transition of {name} from {previous}')


def _wait_or_retry(future: Any, description: str) -> Wait:
    """Wait for an answer, or for a time after which it may be lost."""
    end = time.monotonic() + RETRY_S
    return Wait(
        lambda: (future is not None and future.done()) or time.monotonic() > end, description
    )
