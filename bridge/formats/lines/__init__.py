"""Formats of text: CSV, JSON, plain lines, and their compression."""
