"""What an agent may do: which tools it is offered. Pure: takes values, returns decisions."""
