"""Insika, the engine: it decides what becomes of a conversation. It knows no broker and starts no process."""
