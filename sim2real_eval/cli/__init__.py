# SPDX-License-Identifier: Apache-2.0
"""The `sim2real` command: thin verbs over the library."""

__all__: list[str] = []
