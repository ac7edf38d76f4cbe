"""An HTTP tool as settings data: what it is told, what it sends and how its answer is read, all checked when it is
read. Values only; whoever sends a request by them is `insika.tools.http`."""
