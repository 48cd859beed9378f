"""Tells what a plan skipped and why, as text, HTML and JSON."""
