"""File-level indexes: how they are built, stored and read, and their kinds."""
