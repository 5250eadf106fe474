"""What all readers of a contract share: the oracle, and the torch layer that launches kernels."""
