"""The rules of one turn: counting, warning, steering, repetition, and the loop that applies them. Pure: no I/O here."""
