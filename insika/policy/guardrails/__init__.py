"""Content safety: what may be said to an agent, and what may leave in its answers. Pure: values in, verdicts out.

No text that was looked at is kept, counted by more than its kind, or named in a verdict.
"""
