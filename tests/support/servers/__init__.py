"""Servers that only tests start."""
