"""What `skipbridge cluster` does: run, advise, watch, publish, revert, clean."""
