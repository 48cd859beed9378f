"""``python -m bridge``."""

from bridge.cli.main import main

main()
