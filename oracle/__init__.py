"""Compares a kernel with the reference of the equation it claims to compute."""
