"""Rules on checkpoints: sidecars, digests, safetensors headers, pickles that are never loaded."""
