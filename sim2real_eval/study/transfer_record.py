# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The record of a transfer in the folder of a study, or of `sim2real transfer`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.input_files import read_json
from .options import RMS_UNITS
from .outcome import MARK

TRANSFER_FILE = 'transfer.json'


def read_transfer(folder: str | Path) -> dict[str, Any] | None:
    """Return the transfer in a folder, also beside a study.json in it, or None if there is none.

    Raises
    ------
    Sim2RealError
        When the file is no transfer.
    """
    place = Path(folder)
    path = (place.parent if place.name == MARK else place) / TRANSFER_FILE
    try:
        record = read_json(path)
        if not record['models'] or not isinstance(record['quantity'], str):
            raise TypeError
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError):
        raise Sim2RealError(f'{path}: is not a result of `sim2real transfer`') from None
    return dict(record)


def loss_text(quantity: str, loss: float | None) -> str:
    """Return a transfer loss as text: per cent of an error, or the difference of a score.

    Examples
    --------
    >>> loss_text('speed', 0.123), loss_text('likelihood', 0.25), loss_text('speed', None)
    ('+12.3 %', '+0.250', '-')
    >>> loss_text('speed', -1e-9)
    '0.0 %'
    """
    if loss is None:
        return '-'
    text = f'{100.0 * loss:+.1f} %' if quantity in RMS_UNITS else f'{loss:+.3f}'
    # A loss that is rounded to zero has no sign.
    return text if any(digit in text for digit in '123456789') else text[1:]
