"""``python -m peer``: the same as ``distributary``."""

import sys

from peer.cli import main

sys.exit(main())
