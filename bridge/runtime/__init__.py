"""Opens what a command needs: storage, catalog, table, index, Spark."""
