"""Trino: builds the connector, starts and asks a server."""
