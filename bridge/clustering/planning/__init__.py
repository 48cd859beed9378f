"""Which files a plan rewrites, in which order, and what queries gain by it."""
