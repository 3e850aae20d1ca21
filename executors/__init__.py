"""Executors: inline, thread, simulated. Each imports rlgraph's protocols, never another one."""
