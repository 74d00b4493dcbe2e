"""What clients tell of themselves (KIP-714): which metrics are wanted, and when."""
