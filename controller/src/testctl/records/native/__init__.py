# SPDX-License-Identifier: Apache-2.0
"""The C code that makes a point's packets (packets.h), which is compiled before it is first used.

The library lies in the cache, $TESTCTL_CACHE/records/<hash of the sources>/packets.so, or where $TESTCTL_PACKETS says.
Its structures are in structures.py.
"""

from testctl.records.native.library import FLAGS, SEARCH, SOURCES, compiled, if_compiled, ready

__all__ = ["FLAGS", "SEARCH", "SOURCES", "compiled", "if_compiled", "ready"]
