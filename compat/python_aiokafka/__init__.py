"""aiokafka, for asyncio: ``python -m compat.python_aiokafka`` plays the scenarios."""
