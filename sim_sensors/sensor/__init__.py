# SPDX-License-Identifier: Apache-2.0
"""What all kinds of sensor share: the base class, delivery, covariances and the catalogue."""
