"""``python -m peer``: the same as ``distributary``."""

import sys

try:
    from peer.cli import main

    sys.exit(main())
except KeyboardInterrupt:
    sys.exit(130)
