"""The ``sapwood`` command: one file per sub-command."""
