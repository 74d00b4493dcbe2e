"""Apache Kafka 4.4.0 as a coordinator of groups.

``transcript.json`` is what ``record.py`` heard in answer to ``steps.py``.  ``consumer_offsets.log`` is a
partition of ``__consumer_offsets`` with everything in it (``offsets.topic.num.partitions=1``), after clients
had

* formed the stable group ``workers`` of the static member ``first`` and a dynamic one, committed two
  offsets, and restarted the static member;
* formed and left the group ``former`` after one commit;
* committed without a group as ``simple`` (and deleted one of the offsets), as ``kept`` with OffsetCommit
  version 2 and a retention of its own, and as ``gone``, a group that was deleted again;
* committed transactionally as ``exact``, once to the end and once aborted, and as ``undecided``, without
  an end;
* read as ``modern`` in a group of the newer protocol (KIP-848).
"""
