# SPDX-License-Identifier: Apache-2.0
"""RMSE and R between real and simulated signals as printed in [Ligorio2015], shown beside ours.

Origin: [Ligorio2015], table 2: about 140 s of a hand-held sensor unit. They are facts about that
unit and that motion; ours need not agree.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

__all__ = ['LIGORIO_2015', 'PublishedAgreement']


@dataclasses.dataclass(frozen=True)
class PublishedAgreement:
    """RMSE, unit of the signal, and correlation of a simulated with a real signal."""

    rmse: float
    correlation: float


LIGORIO_2015: Mapping[str, PublishedAgreement] = {
    'angular_rate_x': PublishedAgreement(0.03, 0.97),
    'angular_rate_y': PublishedAgreement(0.02, 0.90),
    'angular_rate_z': PublishedAgreement(0.02, 0.97),
    'specific_force_x': PublishedAgreement(0.15, 0.98),
    'specific_force_y': PublishedAgreement(0.15, 0.99),
    'specific_force_z': PublishedAgreement(0.15, 0.99),
    'magnetic_field_x': PublishedAgreement(1.74e-6, 0.98),
    'magnetic_field_y': PublishedAgreement(2.00e-6, 0.99),
    'magnetic_field_z': PublishedAgreement(1.10e-6, 0.99),
}
