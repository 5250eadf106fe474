"""Rules on telemetry: data in a profile, compiled to table checks, judged batch by batch."""
