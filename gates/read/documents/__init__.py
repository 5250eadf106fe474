"""Reads documents whole and strictly: JSON, YAML, TOML, digest lists, safetensors, pickles."""
