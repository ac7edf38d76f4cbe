"""Tools that are described in the settings and run by sending one HTTP request through the egress guard."""
