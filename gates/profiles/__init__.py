"""Built-in profiles: one TOML each."""
