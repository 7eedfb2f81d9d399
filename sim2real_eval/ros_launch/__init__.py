# SPDX-License-Identifier: Apache-2.0
"""What the launch files share: their arguments, each described once, and their nodes."""

__all__: list[str] = []
