"""What is done about models that fail: how a failure is read, and what may be tried."""
