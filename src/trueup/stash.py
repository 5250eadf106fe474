"""What the plugin's modules leave for one another in pytest's stash."""

from __future__ import annotations

import pytest

# A kernel still holds a device, so that the process cannot end in an orderly way.
hung = pytest.StashKey[bool]()
