"""Tests that a group must pass to be planned, one module each."""
