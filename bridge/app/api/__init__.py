"""The public Python API, as `bridge` exports it; the modules themselves are private."""
