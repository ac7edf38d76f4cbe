"""The command line: what people type, what they read, and nothing that is decided."""
