"""Turns verdicts into text, JSON, JUnit and HTML; it judges nothing."""
