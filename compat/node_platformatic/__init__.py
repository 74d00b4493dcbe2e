"""@platformatic/kafka: ``python -m compat.node_platformatic`` plays the scenarios."""
