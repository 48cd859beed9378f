"""Weighted, coalesced splits, made in the background."""
