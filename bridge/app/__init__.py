"""What users call: the command line, the Python API, the demo, and the checks of `doctor`."""
