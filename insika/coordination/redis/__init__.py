"""Signals and events over Redis. Losing Redis, or all that it holds, costs hints and old events, and nothing else."""
