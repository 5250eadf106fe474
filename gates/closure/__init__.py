"""Closes a ticket: its criteria, evidence, thread and files, and the statement over them."""
