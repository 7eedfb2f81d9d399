# SPDX-License-Identifier: Apache-2.0
"""How certain a distance between real and simulated runs is."""
