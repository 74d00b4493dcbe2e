"""What Apache Kafka 4.4.0's classes for streams groups made of groups and topologies drawn at random.

Each line of ``groups.jsonl`` and ``topologies.jsonl`` is a question and its answer; they are recorded by
``python -m tests.broker.groups.streams.asking``.
"""
