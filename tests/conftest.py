"""Settings that all tests share."""

from hypothesis import settings

# Machines are shared and the first call into torch takes a second: time limits belong to pytest.
settings.register_profile("rlgraph", deadline=None)
settings.load_profile("rlgraph")
