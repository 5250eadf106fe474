"""The commands: each reads its options, calls one pipeline and hands the result to a renderer."""
