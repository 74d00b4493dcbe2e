"""sarama: ``python -m compat.go_sarama`` plays the scenarios."""
