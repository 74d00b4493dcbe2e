"""aiokafka, the client for asyncio, through the scenarios: ``python -m compat.python_aiokafka``."""
