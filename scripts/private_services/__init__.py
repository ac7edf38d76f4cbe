"""RabbitMQ, PostgreSQL and Redis of one's own, on free loopback ports, with data in a temporary folder."""
