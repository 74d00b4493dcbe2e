"""kafkajs: ``python -m compat.node_kafkajs`` plays the scenarios."""
