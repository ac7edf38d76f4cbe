"""Samples that come with the product: what `insika dev` and the demo run on in an empty folder."""
