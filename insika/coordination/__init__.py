"""What actors tell each other and count together. Nothing here is needed for correctness: the store has the truth."""
