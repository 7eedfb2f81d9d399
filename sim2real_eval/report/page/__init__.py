# SPDX-License-Identifier: Apache-2.0
"""A study as one HTML page."""

__all__: list[str] = []
