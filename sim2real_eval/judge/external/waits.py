# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Conditions that a replay waits for, and service calls that are repeated until answered."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

RETRY_S = 0.5
"""Time without an answer after which a request is sent again, s."""


class Wait(NamedTuple):
    """A condition to wait for, polled until it is true."""

    is_met: Callable[[], bool]
    description: str  # for the error message after a timeout


Work = Generator[Wait, None, None]
"""Work that yields the conditions it waits for; the `ReplayClock` runs several in parallel."""


def call_service(client: Any, request: Any, description: str) -> Generator[Wait, None, Any]:
    """Call a service until it answers; return the answer to the last request.

    A request or an answer is lost before client and server have discovered each other, whatever
    `service_is_ready` says. So the request may be repeated and must change nothing. The pause
    doubles, because the queue of a service is short. The call ends with the answer to the last
    request.
    """
    futures = [client.call_async(request)]
    retry_time = time.monotonic() + RETRY_S

    def is_answered() -> bool:
        nonlocal retry_time
        if any(future.done() for future in futures):
            return bool(futures[-1].done())
        if time.monotonic() > retry_time:
            futures.append(client.call_async(request))
            retry_time = time.monotonic() + RETRY_S * 2 ** len(futures)
        return False

    yield Wait(is_answered, description)
    return futures[-1].result()
