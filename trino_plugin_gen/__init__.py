"""Generates and builds skipbridge's native connector for a Trino release."""
