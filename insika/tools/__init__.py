"""Tools: how they are declared, checked and called."""
