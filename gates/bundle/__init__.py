"""Bundles: made by `trueup bundle`, and their manifests judged."""
