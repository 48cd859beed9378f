"""Clustering of Hudi tables by Hudi's own job."""
