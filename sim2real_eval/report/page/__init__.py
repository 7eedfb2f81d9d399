# SPDX-License-Identifier: Apache-2.0
"""A study as one HTML page."""

from __future__ import annotations

from sim2real_eval.report.page.page import study_page

__all__ = ['study_page']
