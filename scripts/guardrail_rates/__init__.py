"""How often the input guard is wrong: ordinary messages that it refuses, and attempts that it lets through."""
