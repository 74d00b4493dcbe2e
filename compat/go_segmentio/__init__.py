"""segmentio's kafka-go: ``python -m compat.go_segmentio`` plays the scenarios."""
