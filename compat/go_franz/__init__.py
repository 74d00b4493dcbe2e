"""franz-go: ``python -m compat.go_franz`` plays the scenarios."""
