"""Agents as data: profiles, their revisions, and which layer of configuration wins."""
