"""`skipbridge demo`: real flights, a metastore, a planner and Trino."""
