"""The tests here run whole processes over a file."""

from tests.actor_world import place_for

__all__ = ["place_for"]
