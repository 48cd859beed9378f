"""Tables of segments: the commands over their log, SQL, and materialised views."""
