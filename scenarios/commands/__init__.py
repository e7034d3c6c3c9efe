"""The commands ``demo`` and ``generate``; see ``peer.commands`` for what a command is."""
