# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Node with the life cycle of a managed node, which starts itself unless it is told not to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn

from sim_sensors.core.errors import Sim2RealError
from .parameters import ParameterNode

_CHANGE_STATE = '/change_state'


class ManagedNode(ParameterNode, LifecycleNode):
    """Managed node: `ros2 lifecycle set NODE configure`, `activate`, `deactivate`, `cleanup`.

    Its constructor declares and checks the parameters, so that a wrong one ends the process at
    once, and calls `start`. Subclasses override `configure`, `activate` and `deactivate`, which
    raise Sim2RealError if they fail; the node then stays in its state, and logs the reason.
    Publishers, subscriptions, services and timers that were made by `activate` are removed when
    the node is deactivated, those of `configure` when it is cleaned up.

    References
    ----------
    [Lifecycle]: states and transitions of managed nodes.
    """

    def __init__(self, name: str, **node_options: Any) -> None:
        super().__init__(
            name, automatically_declare_parameters_from_overrides=True, **node_options
        )
        self._problem: Exception | None = None
        self._made: dict[str, list[Any]] = {}
        for service in self.services:
            if service.srv_name.endswith(_CHANGE_STATE):
                service.callback = self._refuse_invalid(service.callback)

    @property
    def state(self) -> str:
        """State of the node: unconfigured, inactive, active or finalized."""
        return str(self._state_machine.current_state[1])

    @property
    def is_active(self) -> bool:
        """Whether the node is active."""
        return self.state == 'active'

    def start(self, *, autostart: bool) -> None:
        """Configure and activate the node, unless another process does.

        Raises the error of a step that failed.
        """
        for step in (self.trigger_configure, self.trigger_activate) if autostart else ():
            if step() is not TransitionCallbackReturn.SUCCESS:
                assert self._problem is not None
                raise self._problem

    def configure(self) -> None:
        """Make everything that takes time or can fail, and all publishers."""

    def activate(self) -> None:
        """Begin to work."""

    def deactivate(self) -> None:
        """Stop working; a later `activate` begins anew."""

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Configure the node."""
        return self._make('configure')

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Activate the node."""
        return self._make('activate')

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Deactivate the node."""
        self.deactivate()
        return self._remove('activate')

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Clean up the node."""
        return self._remove('configure')

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop and clean up; the process goes on, as that of any managed node."""
        if 'activate' in self._made:
            self.on_deactivate(state)
        return self._remove('configure')

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Clean up after an error that `activate` or `configure` did not expect."""
        return self._remove('configure')

    def destroy_node(self) -> None:
        """Destroy the node with its state machine, whose topic and services rclpy leaves."""
        self._state_machine.destroy_when_not_in_use()
        super().destroy_node()

    def _make(self, step: str) -> TransitionCallbackReturn:
        """Configure or activate, and keep what was made."""
        before = set(self._entities())
        try:
            getattr(self, step)()
        except Exception as error:
            # rclpy drops exceptions of a transition without a word.
            self._problem = error
            self._made[step] = [entity for entity in self._entities() if entity not in before]
            self._remove(step)
            if not isinstance(error, Sim2RealError):
                self.get_logger().error(f'{step}: {error!r}')
                raise
            self.get_logger().error(str(error))
            return TransitionCallbackReturn.FAILURE
        self._made[step] = [entity for entity in self._entities() if entity not in before]
        return TransitionCallbackReturn.SUCCESS

    def _entities(self) -> list[Any]:
        return [*self.publishers, *self.subscriptions, *self.services, *self.timers]

    def _remove(self, step: str) -> TransitionCallbackReturn:
        for entity in self._made.pop(step, ()):
            for destroy in (
                self.destroy_publisher,
                self.destroy_subscription,
                self.destroy_service,
                self.destroy_timer,
            ):
                # Each returns False for an entity of another kind.
                if destroy(entity):
                    break
        return TransitionCallbackReturn.SUCCESS

    def _refuse_invalid(
        self, change_state: Callable[[Any, Any], Any]
    ) -> Callable[[Any, Any], Any]:
        """Return the callback of the service without the exception for an invalid transition.

        In rclpy 7.1 a request to activate an active node ends the process (rclpy issue 1209).
        """

        def change(request: Any, response: Any) -> Any:
            transition = request.transition
            offered = [entry[:2] for entry in self._state_machine.available_transitions]
            if (
                transition.label in [label for _, label in offered]
                if transition.label
                else transition.id in [number for number, _ in offered]
            ):
                return change_state(request, response)
            self.get_logger().warning(
                f'{transition.label or transition.id} is no transition of a node that is '
                f'{self.state}'
            )
            response.success = False
            return response

        return change
