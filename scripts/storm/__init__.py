"""The cluster under fire: real processes over real services, a seeded plan of faults, and a verdict on what is left.

`storm` puts it together. What the product says about itself counts for nothing here: the verdict looks at the tables,
at what the tools, the receiver and the producer wrote down, and at what was done to whom.
"""
