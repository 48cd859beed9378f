"""The commands of `skipbridge cluster`."""
