# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Sensor models as files of other simulators, and back.

`error_curves` has the Allan deviation of a model, and `law_fit` the parameters of the law of a
simulator that follow it best (`increment_fit` for receivers). Each simulator is a class that says
what its law can have, and writes and reads its format: `xml_simulators`, `text_simulators`,
`code_simulators`, `gps_simulators`. The law itself is one of our presets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core import lazily

if TYPE_CHECKING:
    from .gps_export import GpsExport, export_gps
    from .imu_export import ImuExport, export_imu, imu_from_text

__all__ = ['GpsExport', 'ImuExport', 'export_gps', 'export_imu', 'imu_from_text']
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'gps_export', 'imu_export')
