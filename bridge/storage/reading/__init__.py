"""Many reads in flight, each of one version of a file."""
