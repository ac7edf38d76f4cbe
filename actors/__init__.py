"""Processes: what runs, owns and ends. Imports the engine and the outbox, never the other way round."""
