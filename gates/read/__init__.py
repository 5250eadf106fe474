"""Strict, bounded readers: bytes in, typed tables and named faults out."""
