"""Several processes: sharded matrices re-formed, token-weighted means, what must be equal."""
