"""The way in for other programs: turn jobs published to RabbitMQ. Nothing else in the engine knows the broker."""
