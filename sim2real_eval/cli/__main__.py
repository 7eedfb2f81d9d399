# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`python -m sim2real_eval.cli`."""

from __future__ import annotations

import sys

from .main import main

sys.exit(main())
