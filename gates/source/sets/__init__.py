"""Rules over several files: sets that must agree, documents that must tell what the code has."""
