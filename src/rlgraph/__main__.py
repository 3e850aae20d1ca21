"""``python -m rlgraph``: the same as the ``rlgraph`` command."""

from rlgraph.cli import main

raise SystemExit(main())
