"""What stops an agent before a model is asked: how often, how many tokens, how much in a calendar window. Pure."""
