# SPDX-License-Identifier: Apache-2.0
"""Poses from tags that a camera sees."""
