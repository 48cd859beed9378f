"""Statements about tables of segments: text to frozen dataclasses, and back."""
