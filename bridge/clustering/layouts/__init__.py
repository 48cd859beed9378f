"""Orders of rows, one module each."""
