"""Clustering of tables. Public is `check_write`, for writers that cooperate."""

from bridge.clustering.write_check import check_write

__all__ = ["check_write"]
