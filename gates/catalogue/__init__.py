"""Every finding and rule as data: id, summary, why, example, fix."""
