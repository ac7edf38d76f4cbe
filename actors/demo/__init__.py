"""The demo: a real conversation through the whole pipeline, told step by step, with a real kill in the middle."""
