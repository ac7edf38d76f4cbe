"""What may not leave in an answer: found and replaced while the answer is streamed. Pure."""
