# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Executables end without an error after a signal, and with one after a fault."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip('rclpy', reason='no ROS')

from sim2real_eval.judge.external.graph import free_domain

PROGRAM = """
import rclpy
from rclpy.node import Node
from std_msgs.msg import String
from sim_sensors.ros.running import run

class Late(Node):
    def __init__(self):
        super().__init__('late')
        self.publisher = self.create_publisher(String, 'late', 1)
        self.create_timer(0.01, self.tick)

    def tick(self):
        {first}
        self.publisher.publish(String())
        raise RuntimeError('a fault')

raise SystemExit(run('late', lambda: [Late()], []))
"""


def ended(program: str) -> subprocess.CompletedProcess[str]:
    with free_domain() as domain:
        environment = {
            **os.environ,
            'ROS_DOMAIN_ID': str(domain),
            'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST',
        }
        return subprocess.run(
            [sys.executable, '-c', program],
            env=environment, capture_output=True, text=True, timeout=180, check=False,
        )  # fmt: skip


@pytest.mark.parametrize('first', ['rclpy.shutdown()', 'rclpy.shutdown(); raise SystemError'])
def test_a_callback_that_fails_after_a_signal_is_not_an_error(first: str) -> None:
    """SIGINT shuts the context down before a callback publishes, or within compiled code."""
    done = ended(PROGRAM.format(first=first))
    assert (done.returncode, done.stderr) == (0, '')


INTERRUPTED = """
        import os, signal, time
        # As it is until rcl's own thread has shut the context down.
        rclpy.ok = lambda: True
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10)
        except KeyboardInterrupt:
            raise RuntimeError('cannot be converted') from None
"""


def test_an_interrupt_that_compiled_code_converts_is_not_an_error() -> None:
    done = ended(PROGRAM.format(first=INTERRUPTED.strip()))
    assert (done.returncode, done.stderr) == (0, '')


def test_an_error_of_the_node_is_shown() -> None:
    done = ended(PROGRAM.format(first='pass'))
    assert done.returncode == 1
    assert 'RuntimeError: a fault' in done.stderr


TWICE = """
import os, signal, time
from rclpy.node import Node
from sim_sensors.ros.running import run

class Interrupted(Node):
    def __init__(self):
        super().__init__('interrupted')
        self.create_timer(0.01, lambda: os.kill(os.getpid(), signal.SIGINT))

    def destroy_node(self):
        super().destroy_node()
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)

status = run('interrupted', lambda: [Interrupted()], [], stop=lambda: None)
raise SystemExit(status)
"""


def test_a_second_interrupt_while_the_node_is_destroyed_is_not_an_error() -> None:
    """A terminal and `ros2 launch` both send SIGINT."""
    done = ended(TWICE)
    assert (done.returncode, done.stderr) == (0, '')
