"""Groups of consumers: who is a member, who leads, and how far each group has read."""
