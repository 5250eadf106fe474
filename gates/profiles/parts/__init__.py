"""Rules that several profiles include."""
