"""Published systems as graphs: one file a system, a ``Config`` and a function that builds it."""
