"""Signals and events between actors. Nothing here is needed for correctness: the store carries the truth."""
