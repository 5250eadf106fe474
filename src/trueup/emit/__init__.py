"""Constants of a layout as source code, with the fingerprint computed again by the compiler."""
