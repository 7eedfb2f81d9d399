# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Main function of the node executables, and waits for the graph and the clock."""

from __future__ import annotations

import atexit
import contextlib
import gc
import logging
import os
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
from rclpy.exceptions import InvalidHandle, NameValidationException
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.expand_topic_name import expand_topic_name
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.validate_full_topic_name import validate_full_topic_name

from sim_sensors.core.errors import ParameterError, Sim2RealError


def run(
    name: str,
    make: Callable[[], Sequence[Node]],
    args: Sequence[str] | None = None,
    finished: Callable[[], bool] = lambda: False,
    stop: Callable[[], None] | None = None,
) -> int:
    """Create nodes and spin them in one executor until the process is stopped.

    Parameters
    ----------
    name : str
        Name of the executable in messages.
    make : callable
        Creates the nodes.
    args : sequence of str, optional
        Command line without the executable; None: that of the process.
    finished : callable
        Polled after each callback; True ends the process with status 0.
    stop : callable, optional
        Called at the end, also after SIGINT and SIGTERM, while the nodes can still publish.

    Returns
    -------
    int
        Exit status: 0, or 2 if a parameter or argument is wrong.
    """
    if args is None:
        # Skips a last garbage collection of the compiler's objects, which takes 0.2 s.
        atexit.register(gc.freeze)
    interrupt = _InterruptRecorder() if stop is None else _EndRequest()
    try:
        rclpy.init(
            args=None if args is None else [name, *args],
            # The handlers of rclpy end the context, so that nothing can be published.
            signal_handler_options=None if stop is None else SignalHandlerOptions.NO,
        )
    except RuntimeError as error:
        # The parser of --ros-args refused an argument.
        interrupt.restore()
        return _print_error(name, str(error))
    # The library logs what takes long, such as compiling.
    log, handler = logging.getLogger('sim_sensors'), _RosLogHandler(name)
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    executor = SingleThreadedExecutor()
    nodes: Sequence[Node] = ()
    try:
        nodes = make()
        for node in nodes:
            executor.add_node(node)
        if isinstance(interrupt, _EndRequest):
            interrupt.wake_by(nodes[0].create_guard_condition(lambda: None).trigger)
        while rclpy.ok() and not finished() and not interrupt.occurred:
            executor.spin_once()
    except Sim2RealError as error:
        return _print_error(name, str(error))
    except (KeyboardInterrupt, ExternalShutdownException):
        return 0
    except (RuntimeError, SystemError):
        # After a signal, rcl refuses the calls of a running callback. Compiled code turns a
        # KeyboardInterrupt into another error: numba into a SystemError, rclpy into a
        # RuntimeError.
        if rclpy.ok() and not interrupt.occurred:
            raise
        return 0
    finally:
        if stop is not None and rclpy.ok():
            stop()
        executor.shutdown()
        # The threads of the middleware end with the last node. If they still run while the
        # process ends, they may read what it has freed already: a segmentation fault.
        for node in nodes:
            node.destroy_node()
        rclpy.try_shutdown()
        log.removeHandler(handler)
        interrupt.restore()
    return 0


class _InterruptRecorder:
    """SIGINT handler that records the signal and calls the previous handler.

    It is installed in the main thread only, which receives the signals.
    """

    def __init__(self) -> None:
        self.occurred = False
        self._previous: Any = None
        if threading.current_thread() is threading.main_thread():
            # Installed before the handler of rclpy, which calls this one.
            self._previous = signal.signal(signal.SIGINT, self._record)

    def _record(self, number: int, frame: FrameType | None) -> None:
        self.occurred = True
        if callable(self._previous):
            self._previous(number, frame)

    def restore(self) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)


class _EndRequest(_InterruptRecorder):
    """Handler of SIGINT and SIGTERM that lets the running callback finish.

    Until `wake_by` is called, both raise KeyboardInterrupt, since making nodes may take long. The
    executor waits outside of Python, where no handler runs, so that a thread wakes it.
    """

    def __init__(self) -> None:
        self.occurred = False
        self._previous = {}
        self._is_spinning = False
        if threading.current_thread() is threading.main_thread():
            self._pipe = os.pipe()
            os.set_blocking(self._pipe[1], False)
            self._previous_pipe = signal.set_wakeup_fd(self._pipe[1], warn_on_full_buffer=False)
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._record)

    def _record(self, number: int, frame: FrameType | None) -> None:
        self.occurred = True
        if not self._is_spinning:
            raise KeyboardInterrupt

    def wake_by(self, wake: Callable[[], None]) -> None:
        """Take the function that wakes the executor."""
        self._is_spinning = True
        if self._previous:
            threading.Thread(target=self._wait, args=(wake,), daemon=True).start()

    def _wait(self, wake: Callable[[], None]) -> None:
        while os.read(self._pipe[0], 1):
            # Ctrl-C at a terminal comes twice with `ros2 launch`: the second time, the node may be
            # destroyed already.
            with contextlib.suppress(InvalidHandle):
                wake()
        os.close(self._pipe[0])

    def restore(self) -> None:
        if not self._previous:
            return
        previous, self._previous = self._previous, {}
        signal.set_wakeup_fd(self._previous_pipe)
        for number, handler in previous.items():
            signal.signal(number, handler)
        # The thread ends with the pipe, and closes its other end.
        os.close(self._pipe[1])
        if not self._is_spinning:
            os.close(self._pipe[0])


class _RosLogHandler(logging.Handler):
    """Handler that forwards log records of libraries to the ROS log."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._log = rclpy.logging.get_logger(name)

    def emit(self, record: logging.LogRecord) -> None:
        self._log.info(record.getMessage())


def _print_error(name: str, problem: str) -> int:
    print(f'{name}: error: {problem}', file=sys.stderr)
    return 2


class AwaitedConnections:
    """Publishers and subscriptions that a node waits for.

    Each word is TOPIC for a publisher of a topic, or TOPIC:NODE for a subscription of that node;
    other words raise ParameterError. Subscribers are named and not counted, since a viewer is no
    sensor. Names are resolved as those of `node`.
    """

    def __init__(self, node: Node, words: Sequence[str]) -> None:
        self._node = node
        self._connections = [(word, *self._resolve(word)) for word in words]

    def _resolve(self, word: str) -> tuple[str, str]:
        topic, colon, subscriber = word.partition(':')
        name, namespace = self._node.get_name(), self._node.get_namespace()
        try:
            validate_full_topic_name(expand_topic_name(topic, name, namespace))
            if colon:
                if not subscriber.startswith('/'):
                    subscriber = f'{namespace.rstrip("/")}/{subscriber}'
                # The full name of a node has the syntax of a topic.
                validate_full_topic_name(subscriber)
        except (NameValidationException, ValueError):
            raise ParameterError(
                name,
                'awaited',
                f'{word!r} is not allowed; must be TOPIC or TOPIC:NODE, such as imu/data:imu_node',
            ) from None
        return self._node.resolve_topic_name(topic), subscriber

    def missing(self) -> list[str]:
        """Return the words without a connection."""
        return [
            word
            for word, topic, subscriber in self._connections
            if not self._is_connected(topic, subscriber)
        ]

    def _is_connected(self, topic: str, subscriber: str) -> bool:
        if not subscriber:
            return bool(self._node.count_publishers(topic))
        return subscriber in [
            f'{info.node_namespace.rstrip("/")}/{info.node_name}'
            for info in self._node.get_subscriptions_info_by_topic(topic)
        ]


def on_backward_jump(node: Node, callback: Callable[[], None]) -> JumpHandle:
    """Call a function whenever the clock of a node has jumped back; keep the returned handle.

    Switching simulated time on or off is no jump.
    """

    def on_jump(jump: TimeJump) -> None:
        if jump.clock_change == ClockChange.ROS_TIME_NO_CHANGE:
            callback()

    return node.get_clock().create_jump_callback(
        JumpThreshold(
            min_forward=None, min_backward=Duration(nanoseconds=-1), on_clock_change=False
        ),
        post_callback=on_jump,
    )
