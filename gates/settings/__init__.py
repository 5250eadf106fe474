"""`trueup.toml`: the profile, limits, severities and waivers of a repository, and their effect."""
