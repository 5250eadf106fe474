"""Production CUDA kernels, one operation per `.cu`, each with its contract (`.toml`) beside it."""
