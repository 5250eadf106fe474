"""Run acceptance against a locked baseline: bands, folds, tiers, ablations."""
