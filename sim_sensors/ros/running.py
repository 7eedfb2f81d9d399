# SPDX-License-Identifier: Apache-2.0
"""How the executables run: one executor, one line and status 2 for what a user can act on."""

from __future__ import annotations

import atexit
import gc
import logging
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import rclpy
import rclpy.logging
from rclpy.clock import ClockChange, JumpHandle, JumpThreshold, TimeJump
from rclpy.duration import Duration
from rclpy.exceptions import NameValidationException
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.expand_topic_name import expand_topic_name
from rclpy.node import Node
from rclpy.validate_full_topic_name import validate_full_topic_name

from sim_sensors.core.errors import ParameterError, Sim2RealError


def run(
    name: str,
    make: Callable[[], Sequence[Node]],
    args: Sequence[str] | None = None,
    finished: Callable[[], bool] = lambda: False,
) -> int:
    """Make nodes, spin them in one executor until the process is stopped, and return its status.

    That is 0, or 2 when a parameter or argument is wrong. `name` is that of the executable, for
    messages; `args` the command line without it, None that of the process. `finished` is asked
    after each callback; True ends the process with status 0.
    """
    if args is None:
        # At its end the interpreter would look through all that compilers have left: 0.2 s.
        atexit.register(gc.freeze)
    interrupted = _Interrupted()
    try:
        rclpy.init(args=None if args is None else [name, *args])
    except RuntimeError as error:
        # rcl's parser of --ros-args: says what it stumbled over, and then where in its source.
        interrupted.end()
        return _refuse(name, str(error))
    # What takes long for a reason of its own, such as compiling.
    log, forwarded = logging.getLogger('sim_sensors'), _Forwarded(name)
    log.addHandler(forwarded)
    log.setLevel(logging.INFO)
    executor = SingleThreadedExecutor()
    try:
        for node in make():
            executor.add_node(node)
        while rclpy.ok() and not finished():
            executor.spin_once()
    except Sim2RealError as error:
        return _refuse(name, str(error))
    except (KeyboardInterrupt, ExternalShutdownException):
        return 0
    except (RuntimeError, SystemError):
        # What a callback was about to do when the signal came, it can do no more: rcl says so. And
        # compiled code makes another error of the KeyboardInterrupt that comes within: numba's a
        # SystemError, rclpy's a RuntimeError.
        if rclpy.ok() and not interrupted.came:
            raise
        return 0
    finally:
        executor.shutdown()
        rclpy.try_shutdown()
        log.removeHandler(forwarded)
        interrupted.end()
    return 0


class _Interrupted:
    """Remembers that SIGINT came, and hands it on; only in the main thread, which gets signals."""

    def __init__(self) -> None:
        self.came = False
        self._before: Any = None
        if threading.current_thread() is threading.main_thread():
            # Before rclpy's own handler, which calls this one.
            self._before = signal.signal(signal.SIGINT, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        if callable(self._before):
            self._before(number, frame)

    def end(self) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)


class _Forwarded(logging.Handler):
    """Hands what libraries log on to ROS's log."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._log = rclpy.logging.get_logger(name)

    def emit(self, record: logging.LogRecord) -> None:
        self._log.info(record.getMessage())


def _refuse(name: str, problem: str) -> int:
    print(f'{name}: error: {problem}', file=sys.stderr)
    return 2


class Awaited:
    """Topics that somebody publishes, and nodes that subscribe to topics.

    Readers are named, not counted: a viewer that happens to look on is no sensor. Names,
    remappings and the view of the graph are those of `node`. Each word is TOPIC, which somebody
    publishes, or TOPIC:NODE, where that node subscribes to it; another raises ParameterError.
    """

    def __init__(self, node: Node, words: Sequence[str]) -> None:
        self._node = node
        self._entries = [(word, *self._resolved(word)) for word in words]

    def _resolved(self, word: str) -> tuple[str, str]:
        topic, colon, reader = word.partition(':')
        name, space = self._node.get_name(), self._node.get_namespace()
        try:
            validate_full_topic_name(expand_topic_name(topic, name, space))
            if colon:
                reader = reader if reader.startswith('/') else f'{space.rstrip("/")}/{reader}'
                # The name of a node with its namespace looks like that of a topic.
                validate_full_topic_name(reader)
        except (NameValidationException, ValueError):
            raise ParameterError(
                name,
                'awaited',
                f'{word!r} is not allowed; must be TOPIC or TOPIC:NODE, such as imu/data:imu_node',
            ) from None
        return self._node.resolve_topic_name(topic), reader

    def missing(self) -> list[str]:
        """Return the words whose publisher or reader is not there."""
        return [word for word, topic, reader in self._entries if not self._is_there(topic, reader)]

    def _is_there(self, topic: str, reader: str) -> bool:
        if not reader:
            return bool(self._node.count_publishers(topic))
        # While the name of a node is not known yet its namespace is not either.
        readers = [
            f'{found.node_namespace.rstrip("/")}/{found.node_name}'
            for found in self._node.get_subscriptions_info_by_topic(topic)
        ]
        return reader in readers


def on_backward_jump(node: Node, callback: Callable[[], None]) -> JumpHandle:
    """Have a callback called after the clock of a node has jumped back; keep what is returned.

    That simulated time was switched on or off is no jump.
    """

    def jumped(jump: TimeJump) -> None:
        if jump.clock_change == ClockChange.ROS_TIME_NO_CHANGE:
            callback()

    return node.get_clock().create_jump_callback(
        JumpThreshold(
            min_forward=None, min_backward=Duration(nanoseconds=-1), on_clock_change=False
        ),
        post_callback=jumped,
    )
