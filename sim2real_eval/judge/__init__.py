# SPDX-License-Identifier: Apache-2.0
"""Judges: from a recording to an estimate of its velocity."""
