"""Delivers answers and alerts, each at most once."""
