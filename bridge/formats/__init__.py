"""File formats: recognise a file, describe it, collect its index entry, read its rows."""
