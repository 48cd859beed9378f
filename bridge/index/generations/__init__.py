"""How an index is stored: manifests, shards, entries, commits."""
