"""Source gates: structural rules on code and audit documents, on a syntax tree where one exists."""
