# SPDX-License-Identifier: Apache-2.0
"""ROS parameters generated from the declarations of `sim_sensors.core.parameters`."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar, cast

import rclpy.parameter
from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions

from sim_sensors.core.errors import ParameterError, did_you_mean, not_among
from sim_sensors.core.parameters import Parameter, Parameters

P = TypeVar('P', bound=Parameters)

_INT64 = 2**63
# Every ROS node has these.
_OF_ALL_NODES = ('use_sim_time', 'start_type_description_service')
_QOS = 'qos_overrides.'


def descriptor(declaration: Parameter) -> ParameterDescriptor:
    """Return the descriptor: meaning with unit, range, what is allowed in words, read-only."""
    unit = f' [{declaration.unit}]' if declaration.unit not in ('', '1') else ''
    result = ParameterDescriptor(
        description=declaration.doc + unit,
        additional_constraints=f'must be {declaration.allowed()}',
        read_only=declaration.read_only,
    )
    low, high = declaration.minimum, declaration.maximum
    if low is None and high is None:
        return result
    if declaration.kind is int:
        result.integer_range = [
            IntegerRange(
                from_value=-_INT64 if low is None else int(low),
                to_value=_INT64 - 1 if high is None else int(high),
                step=1,
            )
        ]
    elif declaration.kind is float:
        result.floating_point_range = [
            FloatingPointRange(
                from_value=-sys.float_info.max if low is None else float(low),
                to_value=sys.float_info.max if high is None else float(high),
                step=0.0,
            )
        ]
    return result


def given_parameters(node: Node) -> dict[str, Any]:
    """Return what a node was started with, by name, without what every ROS node has.

    It is made with `automatically_declare_parameters_from_overrides`, with nothing declared since.
    """
    return {
        name: _from_ros(parameter.value)
        for name, parameter in node.get_parameters_by_prefix('').items()
        if name not in _OF_ALL_NODES and not name.startswith(_QOS)
    }


def overridable_publisher(node: Node, message: Any, topic: str, depth: int = 10) -> Any:
    """Return a publisher whose quality of service the parameters `qos_overrides` may change.

    It is reliable, which feeds both kinds of subscriptions.
    """
    # A profile for each topic: rclpy writes the overrides into it.
    profile, options = QoSProfile(depth=depth), QoSOverridingOptions.with_default_policies()
    return node.create_publisher(message, topic, profile, qos_overriding_options=options)


class NodeParameters:
    """Parameter sets of a node, each under a prefix, kept equal to the node's ROS parameters.

    A set of sets of parameters `imu` with a part `gyroscope` with a parameter `std` is declared as
    `imu.gyroscope.std`. Values from the command line or a file are parsed as those of a YAML file
    are, so an integer does for a number. Later changes are checked against the declarations before
    they take effect, all of one request or none.

    A node made with `automatically_declare_parameters_from_overrides` shows what it was started
    with, by name in `given`, and `finish` refuses what nobody declared.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self.given = list(given_parameters(node))
        for name in self.given:
            node.undeclare_parameter(name)
        self._sets: dict[str, Parameters] = {}
        self._candidate: dict[str, Parameters] = {}
        self._applied: Callable[[], None] | None = None

    def declare(
        self,
        parameters: P,
        prefix: str = '',
        *,
        skip: tuple[str, ...] = (),
        read_only: bool = False,
    ) -> P:
        """Declare a set, with its values as defaults, and return it with the values in force.

        Nested sets are declared with it. `prefix` goes before each name, with a dot. Names in
        `skip` stay as they are and are not declared; with `read_only` none can be changed later.
        What is wrong raises ParameterError, which names the node, the parameter, the value and
        what is allowed.
        """
        values: dict[str, Any] = {}
        for name, declaration in parameters.declared().items():
            if name not in skip:
                default = getattr(parameters, name)
                if read_only:
                    declaration = dataclasses.replace(declaration, read_only=True)
                values[name] = self._declare(_key(prefix, name), declaration, default)
        for name, part in parameters.parts().items():
            if name not in skip:
                values[name] = self.declare(part, _key(prefix, name), read_only=read_only)
                del self._sets[_key(prefix, name)]
        made = self._replace(parameters, values, prefix)
        self._sets[prefix] = made
        return made

    def has(self, name: str) -> bool:
        """Say whether the node has a parameter."""
        return bool(self._node.has_parameter(name))

    def finish(
        self, others: Mapping[str, Parameters] | None = None, *, allowed: Collection[str] = ()
    ) -> None:
        """Refuse what the node was started with and nobody declared.

        `others` are sets by prefix, such as those of parts that are not in use, and `allowed`
        names that are allowed too. ParameterError names the node, the first parameter that is
        not, and the known one that is nearest to it.
        """
        unused = {
            _key(prefix, name) for prefix, one in (others or {}).items() for name in _flat(one)
        }
        unused.update(allowed)
        for name in self.given:
            if not self.has(name) and name not in unused:
                known = [*given_parameters(self._node), *unused]
                problem = 'unknown parameter'
                near = did_you_mean(name, known)
                raise ParameterError(
                    self._node.get_name(),
                    name,
                    problem + near if near else not_among(problem, name, sorted(known)),
                )

    def get(self, prefix: str = '') -> Any:
        """Return the set that was declared under `prefix`, with the values in force."""
        return self._sets[prefix]

    def follow(self, applied: Callable[[], None]) -> None:
        """Accept changes from now on; `applied` is called after each that took effect."""
        self._applied = applied
        self._node.add_on_set_parameters_callback(self._check)
        self._node.add_post_set_parameters_callback(self._apply)

    def _declare(self, key: str, declaration: Parameter, default: Any) -> Any:
        # Declared twice: first with any type, to read what was given and refuse it in the words
        # of the declaration, then with its descriptor and the value as parsed.
        given = self._node.declare_parameter(
            key, _to_ros(default), ParameterDescriptor(dynamic_typing=True)
        )
        value = declaration.parse(_from_ros(given.value), self._node.get_name(), key)
        self._node.undeclare_parameter(key)
        self._node.declare_parameter(
            key, _to_ros(value), descriptor(declaration), ignore_override=True
        )
        return value

    def _replace(self, parameters: P, values: Mapping[str, Any], prefix: str) -> P:
        try:
            return dataclasses.replace(parameters, **values)
        except ParameterError as error:
            key = _key(prefix, error.key)
            raise ParameterError(self._node.get_name(), key, error.problem) from None

    def _check(self, changes: list[rclpy.parameter.Parameter]) -> SetParametersResult:
        candidate = dict(self._sets)
        try:
            for change in changes:
                for prefix in candidate:
                    candidate[prefix] = self._with(
                        candidate[prefix], prefix, change.name, _from_ros(change.value)
                    )
        except ParameterError as error:
            return SetParametersResult(successful=False, reason=str(error))
        self._candidate = candidate
        return SetParametersResult(successful=True)

    def _with(self, parameters: P, prefix: str, key: str, value: object) -> P:
        """Return the set with one value changed, or the same one when `key` is not in it."""
        for name, declaration in parameters.declared().items():
            if _key(prefix, name) == key:
                parsed = declaration.parse(value, self._node.get_name(), key)
                return self._replace(parameters, {name: parsed}, prefix)
        for name, part in parameters.parts().items():
            inner = _key(prefix, name)
            if key.startswith(f'{inner}.'):
                changed = self._with(part, inner, key, value)
                return self._replace(parameters, {name: changed}, prefix)
        return parameters

    def _apply(self, changes: list[rclpy.parameter.Parameter]) -> None:
        changed = self._candidate != self._sets
        self._sets = self._candidate
        if changed and self._applied is not None:
            self._applied()


def _flat(parameters: Parameters) -> list[str]:
    inner = parameters.parts().items()
    return [
        *parameters.declared(),
        *(_key(name, one) for name, part in inner for one in _flat(part)),
    ]


def _key(prefix: str, name: str) -> str:
    return f'{prefix}.{name}' if prefix and name else prefix or name


def _to_ros(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _from_ros(value: Any) -> object:
    """Return a parameter's value with sequences as lists: rclpy gives arrays of several kinds."""
    if isinstance(value, (bool, int, float, str)) or value is None:
        return value
    return list(cast('list[object]', value))
