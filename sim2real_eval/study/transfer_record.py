# SPDX-License-Identifier: Apache-2.0
"""The record of a transfer in the folder of a study, or of `sim2real transfer`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sim_sensors.core.errors import Sim2RealError
from .options import RMS_UNITS

TRANSFER_FILE = 'transfer.json'


def read_transfer(folder: str | Path) -> dict[str, Any] | None:
    """Return the transfer in a folder, or None if there is none.

    Raises
    ------
    Sim2RealError
        When the file is no transfer.
    """
    path = Path(folder) / TRANSFER_FILE
    try:
        record = json.loads(path.read_text(encoding='utf-8'))
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
    """
    if loss is None:
        return '-'
    return f'{100.0 * loss:+.1f} %' if quantity in RMS_UNITS else f'{loss:+.3f}'
