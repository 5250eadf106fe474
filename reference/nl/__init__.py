"""Equations of Nested Learning: optimisers and fast weights."""
