"""``python -m bridge``."""

from bridge.app.cli.main import main

main()
