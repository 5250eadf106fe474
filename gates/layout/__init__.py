"""Layouts of the internal-state bus: loaded strictly, held to their rules, compared."""
