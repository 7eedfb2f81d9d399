# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Topics of Gazebo Transport from Python, without its libraries: ZeroMQ, and discovery by UDP.

Fortress has no Python bindings, and its C interface ends what it publishes at the first zero byte.
Spoken is version 10 of the protocol, which Fortress has. Messages are bytes, as protocol buffers
have them. Needs pyzmq.
"""

from __future__ import annotations

import getpass
import math
import os
import socket
import struct
import time
import uuid
from collections.abc import Iterator
from typing import NamedTuple

from sim2real_eval.recording.gazebo_log import wire_fields

_GROUP, _PORT, _VERSION = '239.255.0.7', 10317, 10
_ADVERTISE, _SUBSCRIBE, _HEARTBEAT, _BYE, _NEW_CONNECTION = 1, 2, 4, 5, 6
_EVERY_S = 1.0


class Received(NamedTuple):
    """A message: its topic, the name of its type and its bytes."""

    topic: str
    type_name: str
    data: bytes


class Transport:
    """A node that publishes and subscribes.

    Parameters
    ----------
    partition : str
        By default that of the environment: GZ_PARTITION or IGN_PARTITION, else host and user.
    """

    def __init__(self, partition: str = '') -> None:
        given = os.environ.get('GZ_PARTITION') or os.environ.get('IGN_PARTITION')
        name = partition or given or f'{socket.gethostname()}:{getpass.getuser()}'
        self._prefix = f'@/{name}@'
        self._process, self._node = str(uuid.uuid4()), str(uuid.uuid4())
        address = os.environ.get('GZ_IP') or os.environ.get('IGN_IP') or _own_address()
        import zmq  # not everybody has it

        context, self._poller = zmq.Context.instance(), zmq.Poller()
        self._publisher, self._subscriber = context.socket(zmq.PUB), context.socket(zmq.SUB)
        for one in (self._publisher, self._subscriber):
            one.set(zmq.LINGER, 0)
            one.set_hwm(0)
        port = self._publisher.bind_to_random_port(f'tcp://{address}')
        self._address = f'tcp://{address}:{port}'
        self._udp = _multicast(address)
        for readable in (self._subscriber, self._udp):
            self._poller.register(readable, zmq.POLLIN)
        self._advertised: dict[str, bytes] = {}
        self._wanted: dict[str, set[str]] = {}
        self._said = 0.0

    def advertise(self, topic: str, type_name: str) -> None:
        """Say that `publish` will publish on a topic."""
        name = self._prefix + topic
        self._advertised[name] = self._publisher_of(name, self._address, type_name)
        self._send(_ADVERTISE, (7, self._advertised[name]))

    def publish(self, topic: str, type_name: str, data: bytes) -> None:
        """Publish a message on a topic that was advertised."""
        name = self._prefix + topic
        parts = [name.encode(), self._address.encode(), data, type_name.encode()]
        self._publisher.send_multipart(parts)

    def subscribe(self, topic: str) -> None:
        """Take part in a topic, whoever publishes it and whenever that begins."""
        self._wanted[self._prefix + topic] = set()
        self._said = 0.0

    def messages(self) -> Iterator[Received | None]:
        """Return what arrives, for ever; None when nothing did for a while."""
        while True:
            self._say()
            ready = dict(self._poller.poll(100))
            if self._udp.fileno() in ready:
                self._discover(self._udp.recv(65536))
            if self._subscriber not in ready:
                yield None
                continue
            name, _, data, type_name, *_ = self._subscriber.recv_multipart()
            yield Received(name.decode().rpartition('@')[2], type_name.decode(), data)

    def close(self) -> None:
        """Say goodbye."""
        self._send(_BYE)
        for one in (self._publisher, self._subscriber, self._udp):
            one.close()

    def _say(self) -> None:
        if time.monotonic() - self._said < _EVERY_S:
            return
        self._said = time.monotonic()
        self._send(_HEARTBEAT)
        for name, known in self._wanted.items():
            if not known:
                self._send(_SUBSCRIBE, (6, encoded((1, name))))

    def _discover(self, packet: bytes) -> None:
        message = wire_fields(packet[2:])
        if message.get(2, [0])[-1] != _VERSION or message[3][-1].decode() == self._process:
            return
        kind = message.get(4, [0])[-1]
        if kind == _SUBSCRIBE and 6 in message:
            name = wire_fields(message[6][-1])[1][-1].decode()
            if name in self._advertised:
                self._send(_ADVERTISE, (7, self._advertised[name]))
        elif kind == _ADVERTISE and 7 in message:
            offer = wire_fields(message[7][-1])
            name, address = offer[1][-1].decode(), offer[2][-1].decode()
            if name in self._wanted and address not in self._wanted[name]:
                self._wanted[name].add(address)
                self._subscriber.subscribe(name)
                self._subscriber.connect(address)
                type_name = wire_fields(offer[6][-1])[2][-1].decode()
                # The field of the control address says whom this is for.
                content = self._publisher_of(name, address, type_name, offer[3][-1].decode())
                self._send(_NEW_CONNECTION, (7, content))

    def _publisher_of(
        self, name: str, address: str, type_name: str, control: str = 'unused'
    ) -> bytes:
        about = encoded((1, control), (2, type_name), (4, (1 << 64) - 1))
        return encoded(
            (1, name), (2, address), (3, self._process), (4, self._node), (5, 2), (6, about)
        )

    def _send(self, kind: int, *content: tuple[int, bytes]) -> None:
        body = encoded((2, _VERSION), (3, self._process), (4, kind), *content)
        self._udp.sendto(struct.pack('<H', len(body)) + body, (_GROUP, _PORT))


def encoded(*fields: tuple[int, int | float | str | bytes]) -> bytes:
    """Return a message of these fields, by number, on the wire; zeros are left out."""
    parts = []
    for number, value in fields:
        if isinstance(value, float):
            # Minus zero is not the default.
            if value or math.copysign(1.0, value) < 0.0:
                parts.append(_varint(8 * number + 1) + struct.pack('<d', value))
        elif isinstance(value, int):
            parts.append(_varint(8 * number) + _varint(value) if value else b'')
        else:
            data = value.encode() if isinstance(value, str) else value
            parts.append(_varint(8 * number + 2) + _varint(len(data)) + data)
    return b''.join(parts)


def _varint(value: int) -> bytes:
    digits = []
    while True:
        value, digit = value >> 7, value & 127
        digits.append(digit | (128 if value else 0))
        if not value:
            return bytes(digits)


def _own_address() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((_GROUP, _PORT))  # sends nothing
        except OSError:
            return '127.0.0.1'
        return str(probe.getsockname()[0])


def _multicast(address: str) -> socket.socket:
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    udp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    udp.bind(('', _PORT))
    own = socket.inet_aton(address)
    udp.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, own)
    udp.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(_GROUP) + own)
    return udp
