# SPDX-License-Identifier: Apache-2.0
"""The C that every translated program is compiled with."""
