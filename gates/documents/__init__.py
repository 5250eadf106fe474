"""Judges documents: an artifact read whole, held to schema and rules, and to the other files."""
