"""The models one can speak to, each behind the same port (`insika.ports.ModelProvider`)."""
