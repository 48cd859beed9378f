"""Tables of segments: fact files where they lie, named by versions of a log."""
