"""What is stored: one port, whose unit is the operation, and the stores that implement it."""
