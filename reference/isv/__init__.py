"""Equations of the internal-state bus: adaptive scalars kept on the device."""
