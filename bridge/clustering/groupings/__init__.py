"""Ways to choose the files that are rewritten together, one module each."""
