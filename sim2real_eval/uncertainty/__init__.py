# SPDX-License-Identifier: Apache-2.0
"""How sure a distance between real and simulated runs is."""
