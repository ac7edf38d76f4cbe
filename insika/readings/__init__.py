"""What a text says, however it is written: the forms in which a guard reads it. Pure."""
