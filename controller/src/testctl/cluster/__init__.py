# SPDX-License-Identifier: Apache-2.0
"""Points as tasks on a Dask cluster; no shared file system, the same digests (docs/cluster.md)."""

from testctl.cluster.pool import ClusterPool

__all__ = ["ClusterPool"]
