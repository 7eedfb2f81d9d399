# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""ROS parameters generated from the declarations of `sim_sensors.core.parameters`."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar, cast

import rclpy.parameter
from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    ParameterType,
    ParameterValue,
    SetParametersResult,
)
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions

from sim_sensors.core.errors import ParameterError, did_you_mean, not_among
from sim_sensors.core.parameters import Parameter, Parameters

P = TypeVar('P', bound=Parameters)


_INT64 = 2**63


_PARAMETERS_OF_ALL_NODES = ('use_sim_time', 'start_type_description_service')


_QOS_PREFIX = 'qos_overrides.'


def descriptor(declaration: Parameter) -> ParameterDescriptor:
    """Return the descriptor: meaning with unit, range, allowed values in words, read-only."""
    unit = f' [{declaration.unit}]' if declaration.unit not in ('', '1') else ''
    result = ParameterDescriptor(
        description=declaration.doc + unit,
        additional_constraints=f'must be {declaration.allowed_text()}',
        read_only=declaration.read_only,
    )
    low, high = declaration.minimum, declaration.maximum
    if low is None and high is None:
        return result
    if declaration.kind is int:
        first = -_INT64 if low is None else int(low)
        last = _INT64 - 1 if high is None else int(high)
        result.integer_range = [IntegerRange(from_value=first, to_value=last, step=1)]
    elif declaration.kind is float:
        lowest = -sys.float_info.max if low is None else float(low)
        highest = sys.float_info.max if high is None else float(high)
        result.floating_point_range = [
            FloatingPointRange(from_value=lowest, to_value=highest, step=0.0)
        ]
    return result


def start_parameters(
    node: Node, changes: Sequence[rclpy.parameter.Parameter] = ()
) -> dict[str, Any]:
    """Return the parameters that a node was started with, without those that all nodes have.

    The node must be created with `automatically_declare_parameters_from_overrides`, and nothing
    may have been declared since. `changes` are values in place of those of the node.
    """
    parameters = {
        **node.get_parameters_by_prefix(''),
        **{parameter.name: parameter for parameter in changes},
    }
    return {
        name: _from_ros(parameter.value)
        for name, parameter in parameters.items()
        if name not in _PARAMETERS_OF_ALL_NODES and not name.startswith(_QOS_PREFIX)
    }


def overridable_publisher(node: Node, message: Any, topic: str, depth: int = 10) -> Any:
    """Return a reliable publisher whose quality of service `qos_overrides` parameters can change.

    A reliable publisher serves reliable and best-effort subscriptions.
    """
    # Each topic has its own profile, since rclpy writes the overrides into it.
    profile, options = QoSProfile(depth=depth), QoSOverridingOptions.with_default_policies()
    return node.create_publisher(message, topic, profile, qos_overriding_options=options)


class NodeParameters:
    """Parameter sets of a node, each under a prefix, which are also its ROS parameters.

    A set `imu` with a part `gyroscope` and its parameter `std` becomes `imu.gyroscope.std`.
    Values are parsed as those of a YAML file, at the start and later: an integer is accepted as a
    number, and a number as a list of three equal ones. The ROS parameter has the type of its
    descriptor whatever was set. All changes of one request take effect, or none.

    The node must be created with `automatically_declare_parameters_from_overrides`.

    Parameters
    ----------
    node : Node
    can_restart : callable, optional
        Whether parameters that are read at a start can be set now, as in a managed node that is
        not active. By default they never can.
    fixed : collection of str
        Names of parameters that can never be set, since they are read when the process starts.

    Attributes
    ----------
    overrides : list of str
        Names of the parameters that the node was started with.
    """

    def __init__(
        self,
        node: Node,
        can_restart: Callable[[], bool] | None = None,
        fixed: Collection[str] = (),
    ) -> None:
        self._node = node
        self._fixed = fixed
        self._can_restart = can_restart
        self._ignores_overrides = False
        self.overrides = list(start_parameters(node))
        for name in self.overrides:
            node.undeclare_parameter(name)
        self._declarations: dict[str, Parameter] = {}
        self._refusal: ParameterError | None = None
        self._sets: dict[str, Parameters] = {}
        self._candidate: dict[str, Parameters] = {}
        self._on_change: Callable[[set[str]], None] | None = None
        self._check_change: Callable[[Mapping[str, Parameters]], None] = lambda sets: None

    def declare(
        self,
        parameters: P,
        prefix: str = '',
        *,
        skip: tuple[str, ...] = (),
        read_only: bool = False,
    ) -> P:
        """Declare a set and its nested sets; return it with the present values.

        Parameters
        ----------
        parameters : Parameters
            Its values are the defaults.
        prefix : str
            Precedes each name, with a dot.
        skip : tuple of str
            Names that keep their values and are not declared.
        read_only : bool
            Whether the parameters can only be set at the start.

        Raises
        ------
        ParameterError
            With the node, the parameter, its value and what is allowed.
        """
        changes: dict[str, Any] = {}
        for name, declaration in parameters.declarations().items():
            if name not in skip:
                if read_only:
                    declaration = dataclasses.replace(declaration, read_only=True)
                key = _join(prefix, name)
                changes[name] = self._declare_one(key, declaration, getattr(parameters, name))
        for name, part in parameters.parts().items():
            if name not in skip:
                key = _join(prefix, name)
                changes[name] = self.declare(part, key, read_only=read_only)
                del self._sets[key]
        self._sets[prefix] = result = self._replace(parameters, changes, prefix)
        return result

    def _declare_one(self, key: str, declaration: Parameter, default: Any) -> Any:
        self._declarations[key] = declaration
        # Declared twice: first with any type, so that a wrong value is refused with the words of
        # the declaration, then with the descriptor and the parsed value.
        parameter = self._node.declare_parameter(
            key,
            _to_ros(default),
            ParameterDescriptor(dynamic_typing=True),
            ignore_override=self._ignores_overrides,
        )
        value = [] if parameter.value is None else _from_ros(parameter.value)
        parsed = declaration.parse(value, self._node.get_name(), key)
        self._node.undeclare_parameter(key)
        described = descriptor(declaration)
        if described.read_only and self._can_restart is not None and key not in self._fixed:
            described.read_only = False
            described.additional_constraints += '; can be set while the node is not active'
        if parsed == ():
            self._declare_empty_list(key, described)
        elif parsed is None:
            kind = rclpy.parameter.Parameter.Type.from_parameter_value(declaration.kind())
            self._node.declare_parameter(key, kind, described, ignore_override=True)
        else:
            self._node.declare_parameter(key, _to_ros(parsed), described, ignore_override=True)
        return parsed

    def _declare_empty_list(self, key: str, described: ParameterDescriptor) -> None:
        """Declare an empty list of numbers, which rclpy would take for one of bytes."""
        self._node.declare_parameter(key, [], ignore_override=True)
        described.type = ParameterType.PARAMETER_DOUBLE_ARRAY
        self._node.set_descriptor(key, described, ParameterValue(type=described.type))

    def replace(self, parameters: P, prefix: str) -> P:
        """Declare another set in place of the one under `prefix`; return it.

        It has its own values, also where the node was started with others.
        """
        for name in _flat_names(self._sets.pop(prefix)):
            self._node.undeclare_parameter(_join(prefix, name))
        self._ignores_overrides = True
        return self.declare(parameters, prefix)

    def has(self, name: str) -> bool:
        """Return True if the node has a parameter."""
        return bool(self._node.has_parameter(name))

    def refuse_unknown(
        self, unused: Mapping[str, Parameters] | None = None, *, allowed: Collection[str] = ()
    ) -> None:
        """Raise ParameterError if the node was started with an undeclared parameter.

        The parameters of the `unused` sets, by prefix, and the `allowed` names are accepted.
        """
        accepted = {
            _join(prefix, name)
            for prefix, parameters in (unused or {}).items()
            for name in _flat_names(parameters)
        }
        accepted.update(allowed)
        for name in self.overrides:
            if not self.has(name) and name not in accepted:
                known = [*start_parameters(self._node), *accepted]
                problem = 'unknown parameter'
                hint = did_you_mean(name, known)
                raise ParameterError(
                    self._node.get_name(),
                    name,
                    problem + hint if hint else not_among(problem, name, sorted(known)),
                )

    def get(self, prefix: str = '') -> Any:
        """Return the set that was declared under `prefix`, with its present values."""
        return self._sets[prefix]

    def accept_changes(
        self,
        on_change: Callable[[set[str]], None],
        check: Callable[[Mapping[str, Parameters]], None] = lambda sets: None,
    ) -> None:
        """Accept changes from now on.

        Parameters
        ----------
        on_change : callable
            Called after each change with the prefixes of the sets that have changed.
        check : callable
            Called before a change with all sets by prefix; a ParameterError refuses the change.
        """
        self._on_change, self._check_change = on_change, check
        self._node.add_pre_set_parameters_callback(self._convert)
        self._node.add_on_set_parameters_callback(self._check)
        self._node.add_post_set_parameters_callback(self._apply)

    def _convert(
        self, changes: list[rclpy.parameter.Parameter]
    ) -> list[rclpy.parameter.Parameter]:
        """Return changes of the declared types; `_check` refuses those that have other types."""
        self._refusal = None
        return [self._converted(change) for change in changes]

    def _converted(self, change: rclpy.parameter.Parameter) -> rclpy.parameter.Parameter:
        declaration = self._declarations.get(change.name)
        if declaration is None:
            return change
        try:
            parsed = declaration.parse(_from_ros(change.value), self._node.get_name(), change.name)
        except ParameterError as error:
            self._refusal = self._refusal or error
            # rclpy would refuse another type before `_check` can say what is allowed.
            return self._node.get_parameter_or(change.name)
        kind = rclpy.parameter.Parameter.Type.DOUBLE_ARRAY if isinstance(parsed, tuple) else None
        return rclpy.parameter.Parameter(change.name, kind, _to_ros(parsed))

    def _check(self, changes: list[rclpy.parameter.Parameter]) -> SetParametersResult:
        candidate = dict(self._sets)
        try:
            if self._refusal is not None:
                raise self._refusal
            for change in changes:
                for prefix, parameters in candidate.items():
                    candidate[prefix] = self._change(
                        parameters, prefix, change.name, _from_ros(change.value)
                    )
            self._check_change(candidate)
        except ParameterError as error:
            return SetParametersResult(successful=False, reason=str(error))
        self._candidate = candidate
        return SetParametersResult(successful=True)

    def _change(self, parameters: P, prefix: str, key: str, value: object) -> P:
        """Return the set with one value changed; the same set if `key` is not in it."""
        for name, declaration in parameters.declarations().items():
            if _join(prefix, name) == key:
                parsed = declaration.parse(value, self._node.get_name(), key)
                replaced = self._replace(parameters, {name: parsed}, prefix)
                # `ros2 param load` of a dump sets every value, most of them as they are.
                is_other = declaration.read_only and replaced != parameters
                if is_other and self._can_restart and not self._can_restart():
                    problem = 'can only be set while the node is not active'
                    raise ParameterError(self._node.get_name(), key, problem)
                return replaced
        for name, part in parameters.parts().items():
            inner = _join(prefix, name)
            if key.startswith(f'{inner}.'):
                changed = self._change(part, inner, key, value)
                return self._replace(parameters, {name: changed}, prefix)
        return parameters

    def _replace(self, parameters: P, changes: Mapping[str, Any], prefix: str) -> P:
        try:
            return dataclasses.replace(parameters, **changes)
        except ParameterError as error:
            key = _join(prefix, error.key)
            raise ParameterError(self._node.get_name(), key, error.problem) from None

    def _apply(self, changes: list[rclpy.parameter.Parameter]) -> None:
        changed = {key for key, part in self._candidate.items() if part != self._sets[key]}
        self._sets = self._candidate
        if changed and self._on_change is not None:
            self._on_change(changed)


class ParameterNode(Node):
    """Node that takes an empty list at its start, which ROS passes as a parameter without value.

    rclpy refuses to declare it. The first base class of a node, if there are more.
    """

    def declare_parameters(
        self, namespace: str, parameters: Any, *args: Any, **options: Any
    ) -> Any:
        """Declare as Node does; what has no value may get one of any type."""
        for _, value, description in (words for words in parameters if len(words) == 3):
            if value is None:
                description.dynamic_typing = True
        return super().declare_parameters(namespace, parameters, *args, **options)


def _flat_names(parameters: Parameters) -> list[str]:
    nested = [
        _join(name, inner)
        for name, part in parameters.parts().items()
        for inner in _flat_names(part)
    ]
    return [*parameters.declarations(), *nested]


def _join(prefix: str, name: str) -> str:
    return f'{prefix}.{name}' if prefix and name else prefix or name


def _to_ros(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _from_ros(value: Any) -> object:
    """Return a parameter's value with any kind of array of rclpy as a list."""
    if isinstance(value, (bool, int, float, str)) or value is None:
        return value
    return list(cast('list[object]', value))
