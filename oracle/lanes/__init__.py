"""The kinds of check: each lane runs a contract's cases in one way and returns one verdict."""
