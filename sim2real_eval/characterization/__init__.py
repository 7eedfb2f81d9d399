# SPDX-License-Identifier: Apache-2.0
"""What a sensor's errors are, from recordings in which it stood still."""
