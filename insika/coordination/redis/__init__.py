"""Coordination over Redis. Losing Redis, or all that it holds, costs hints, old events and counts, and no more."""
