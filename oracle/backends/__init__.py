"""Where a kernel runs: on a CUDA device, on this CPU through the host build, or in Python."""
