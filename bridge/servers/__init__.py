"""Starts servers: metastores, and what they need."""
