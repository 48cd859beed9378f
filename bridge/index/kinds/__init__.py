"""Index kinds, one module each, and what all of them share: storage, requests, functions."""
