"""The rules of the source gates, one idea a module."""
