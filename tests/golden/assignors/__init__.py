"""What the assignors of Apache Kafka 4.4.0 made of groups that were drawn at random.

``assignments.json`` holds for each group what its members read and had so far, and what they got.
"""
