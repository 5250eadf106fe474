"""Profiles: which files of a run are its artifacts, and which rules they must keep."""
