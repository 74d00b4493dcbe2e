"""What Apache Kafka answers when its disk refuses, and whether Ottla gives the same answers.

The faults come from a small library in C that is loaded into the broker's process (Linux, and a C compiler).
"""
