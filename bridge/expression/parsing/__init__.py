"""Text to predicates: conditions, literals, dates, patterns."""
