"""Proof that the laws catch what they are for: faults planted in a copy of the sources."""
