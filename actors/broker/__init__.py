"""RabbitMQ, as far as Insika uses it: which queues there are, how they are read, and the hints that travel on them.

Nothing here decides what becomes of a job or a session; it only sees to it that whoever decides gets each message, in
order where order counts, and that none is settled before it is decided.
"""
