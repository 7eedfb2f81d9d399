# SPDX-License-Identifier: Apache-2.0
"""Whether real and simulated sensors both say how accurate they are, as filters believe them."""

from __future__ import annotations

from sim2real_eval.common.findings import Finding
from sim2real_eval.preflight.messages import COVARIANCES
from sim2real_eval.recording.recording import Recording
from sim_sensors.core.measurements import MessageArray
from .findings import COVARIANCE_ONE_SIDED

# What the side can do that lacks them.
_REMEDIES = {
    'real': '`corrections: {{{role}: {{{keys}}}}}` in recording.yaml',
    'simulated': 'in the file of the model by its `covariance`',
}


def one_sided_covariances(real: Recording, simulated: Recording) -> tuple[Finding, ...]:
    """Say which sensors state covariances on one side only, and have unknown ones on the other.

    Unknown are zeros throughout; a quantity that is absent (-1) is no matter of covariances.

    Examples
    --------
    >>> from sim2real_eval import simulate
    >>> from sim_sensors import motion_of
    >>> motion = motion_of('line', duration=2.0)
    >>> one, other = (simulate(motion, gps='ch_rw', imu=imu) for imu in ('chrono', 'ideal'))
    >>> [finding.words['quantities'] for finding in one_sided_covariances(one, other)]
    ['linear acceleration, angular velocity']
    """
    found = []
    for role, quantities in COVARIANCES.items():
        if role not in real.roles or role not in simulated.roles:
            continue
        own, other = real.require(role), simulated.require(role)
        # Whose side lacks what the other one states.
        lacking: dict[str, list[tuple[str, str]]] = {'real': [], 'simulated': []}
        for name, key in quantities:
            pair = _states(own, name), _states(other, name)
            if pair in ((True, False), (False, True)):
                lacking['simulated' if pair[0] else 'real'].append((name, key))
        found += [
            COVARIANCE_ONE_SIDED(
                real.roles[role],
                has='simulated' if lacks == 'real' else 'real',
                lacks=lacks,
                sensor=role.upper(),
                quantities=', '.join(name.replace('_', ' ') for name, _ in those),
                remedy=_REMEDIES[lacks].format(
                    role=role, keys=', '.join(f'{key}: VALUE' for _, key in those)
                ),
            )
            for lacks, those in lacking.items()
            if those
        ]
    return tuple(found)


def _states(array: MessageArray, quantity: str) -> bool | None:
    """Return whether messages state a covariance; None where the quantity is absent."""
    covariance = getattr(array, f'{quantity}_covariance')
    if covariance[:, 0, 0].max(initial=0.0) > 0.0:
        return True
    return None if covariance.any() else False
