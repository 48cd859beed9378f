"""From a predicate to the files that may hold a row."""
