"""trueup: prove that a kernel computes its equation, and that a run is fit to close its ticket."""

__version__ = "0.1.0"
