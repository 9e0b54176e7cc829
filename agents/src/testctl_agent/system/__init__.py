# SPDX-License-Identifier: Apache-2.0
"""Files, programs, compilers and namespaces of the host."""
