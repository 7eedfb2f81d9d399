# SPDX-License-Identifier: Apache-2.0
"""Studies: real recordings times sensor models times judges, run, stored and compared."""
