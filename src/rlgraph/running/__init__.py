"""Runs a graph on an executor: what an executor is, and the loop that all of them share."""
