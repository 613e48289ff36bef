"""``python -m sapwood`` is the ``sapwood`` command."""

from sapwood.cli.main import main

main()
