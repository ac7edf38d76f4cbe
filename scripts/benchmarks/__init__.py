"""What `scripts/bench` measures. Ratios of one run are what counts: the machine may be shared and noisy."""
