"""Settings at work: a whole broker that was given one behaves otherwise than it would without."""
