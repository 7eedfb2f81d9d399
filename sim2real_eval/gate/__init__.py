# SPDX-License-Identifier: Apache-2.0
"""Results held against limits and earlier results: may this simulator go out?"""

from __future__ import annotations
