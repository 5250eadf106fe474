"""Reads tables stored by column or in CSV: the same batches as the rows of JSON."""
