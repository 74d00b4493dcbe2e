"""Share groups (KIP-932): records handed out one by one, the state that is kept of them, and their groups."""
