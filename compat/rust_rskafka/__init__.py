"""rskafka: ``python -m compat.rust_rskafka`` plays the scenarios."""
