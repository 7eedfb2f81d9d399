# SPDX-License-Identifier: Apache-2.0
"""What the judges of a study would not have seen, where `sim2real sensitivity` put it beside."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sim2real_eval.common.tables import write_json
from sim_sensors.core.errors import Sim2RealError

MARK = 'sensitivity.json'
"""File that every result of this kind holds; in the folder of a study, what its report shows."""


def beside(study: str | Path, record: Mapping[str, Any]) -> None:
    """Put a result into the folder of a study, whose report then shows it."""
    write_json(Path(study) / MARK, record, allow_nan=False)


def read_record(study: str | Path) -> dict[str, Any] | None:
    """Return what `beside` wrote into a folder; None where it holds nothing of the kind."""
    path = Path(study) / MARK
    try:
        record = json.loads(path.read_text(encoding='utf-8'))
        assert isinstance(record['answers'], dict)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AssertionError):
        raise Sim2RealError(f'{path}: is not what `sim2real sensitivity` wrote') from None
    return dict(record)


def unseen(record: Mapping[str, Any] | None, judge: str) -> str:
    """Return what a judge would not have seen, for the answer of a study; empty if unknown."""
    return str((record or {'answers': {}})['answers'].get(judge, ''))
