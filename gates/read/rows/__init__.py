"""Reads one JSON table: a list of rows or JSON lines, strictly, in typed batches."""
