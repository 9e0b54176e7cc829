# SPDX-License-Identifier: Apache-2.0
"""Points as tasks on a Dask cluster; no shared file system, the same digests (docs/cluster.md)."""

from testctl_cluster.pool import ClusterPool, open_pool

__all__ = ["ClusterPool", "open_pool"]
