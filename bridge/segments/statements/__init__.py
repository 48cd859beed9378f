"""Runs statements about tables of segments."""
