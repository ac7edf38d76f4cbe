"""The chat of `insika dev`: what one types goes in by the door for jobs, what one reads comes from the store."""
