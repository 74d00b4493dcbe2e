# ruff: noqa: E501  (a table is read across)
"""Every setting of Apache Kafka 4.4.0, one a line.  Facts only: ``definitions`` gives them their meaning.

Columns: name, type, default, valid values, and

* of a broker setting: importance, how it can be changed while the broker runs, and marks;
* of a topic or group setting: the broker settings that give its default, in Kafka's order, each with the factor
  that turns its unit into milliseconds, and marks;
* of any other: marks.

Marks: what is ``heeded`` acts as in Kafka; any other setting has a word that says why it does not, and ``reasons``
knows what that stands for.  What is ``internal`` is not shown unless it is set; what is ``dynamic-only`` cannot stand
in a properties file.

Valid values: ``any``; a range such as ``1..`` or ``0..1``; ``{a,b}`` one of these (``i``: in any case); ``[]`` a list,
``[a,b]`` a list of these (``+``: not empty, ``?``: null is allowed); a word names a check of its own.
"""

BROKER = """\
add.partitions.to.txn.retry.backoff.max.ms                INT       100                  0..             HIGH    read-only     heeded
add.partitions.to.txn.retry.backoff.ms                    INT       20                   1..             HIGH    read-only     heeded
advertised.listeners                                      LIST      null                 []+?            HIGH    read-only     heeded
alter.config.policy.class.name                            CLASS     null                 any             LOW     read-only     classes
alter.log.dirs.replication.quota.window.num               INT       11                   1..             LOW     read-only     heeded
alter.log.dirs.replication.quota.window.size.seconds      INT       1                    1..             LOW     read-only     heeded
authorizer.class.name                                     STRING    ""                   non-null        LOW     read-only     security
auto.create.topics.enable                                 BOOLEAN   true                 any             HIGH    read-only     heeded
auto.leader.rebalance.enable                              BOOLEAN   true                 any             HIGH    read-only     heeded
background.threads                                        INT       10                   1..             HIGH    cluster-wide  threads
broker.heartbeat.interval.ms                              INT       2000                 any             MEDIUM  read-only     heeded
broker.id                                                 INT       -1                   any             HIGH    read-only     heeded
broker.rack                                               STRING    null                 any             MEDIUM  read-only     heeded
broker.session.timeout.ms                                 INT       9000                 any             MEDIUM  read-only     heeded
client.quota.callback.class                               CLASS     null                 any             LOW     read-only     classes
compression.gzip.level                                    INT       -1                   1..9|-1         MEDIUM  cluster-wide  heeded
compression.lz4.level                                     INT       9                    1..17           MEDIUM  cluster-wide  heeded
compression.type                                          STRING    producer             {uncompressed,zstd,lz4,snappy,gzip,producer}  HIGH  cluster-wide  heeded
compression.zstd.level                                    INT       3                    -131072..22     MEDIUM  cluster-wide  heeded
config.providers                                          LIST      ""                   []              LOW     cluster-wide  heeded
connection.failed.authentication.delay.ms                 INT       100                  0..             LOW     read-only     security
connections.max.idle.ms                                   LONG      600000               any             MEDIUM  read-only     heeded
connections.max.reauth.ms                                 LONG      0                    any             MEDIUM  read-only     security
controlled.shutdown.enable                                BOOLEAN   true                 any             MEDIUM  read-only     heeded
controller.listener.names                                 LIST      required             []+             HIGH    read-only     heeded
controller.performance.always.log.threshold.ms            LONG      2000                 0..             MEDIUM  read-only     metrics internal
controller.performance.sample.period.ms                   LONG      60000                100..           MEDIUM  read-only     metrics internal
controller.quorum.append.linger.ms                        INT       25                   0..             MEDIUM  read-only     gathering
controller.quorum.auto.join.enable                        BOOLEAN   false                any             LOW     read-only     heeded
controller.quorum.bootstrap.servers                       LIST      ""                   bootstrap-servers  HIGH  read-only     heeded
controller.quorum.election.backoff.max.ms                 INT       1000                 0..             HIGH    read-only     heeded
controller.quorum.election.timeout.ms                     INT       1000                 0..             HIGH    read-only     heeded
controller.quorum.fetch.max.bytes                         INT       1048576              1..             LOW     read-only     heeded
controller.quorum.fetch.snapshot.max.bytes                INT       1048576              1..             LOW     read-only     heeded
controller.quorum.fetch.timeout.ms                        INT       2000                 0..             HIGH    read-only     heeded
controller.quorum.request.timeout.ms                      INT       2000                 0..             MEDIUM  read-only     heeded
controller.quorum.retry.backoff.ms                        INT       20                   0..             LOW     read-only     heeded
controller.quorum.voters                                  LIST      ""                   voters          HIGH    read-only     heeded
controller.quota.window.num                               INT       11                   1..             LOW     read-only     heeded
controller.quota.window.size.seconds                      INT       1                    1..             LOW     read-only     heeded
controller.socket.timeout.ms                              INT       30000                any             MEDIUM  read-only     heeded
cordoned.log.dirs                                         LIST      ""                   []?             MEDIUM  per-broker    heeded
create.topic.policy.class.name                            CLASS     null                 any             LOW     read-only     classes
default.replication.factor                                INT       1                    any             MEDIUM  read-only     heeded
delegation.token.expiry.check.interval.ms                 LONG      3600000              1..             LOW     read-only     security
delegation.token.expiry.time.ms                           LONG      86400000             1..             MEDIUM  read-only     security
delegation.token.max.lifetime.ms                          LONG      604800000            1..             MEDIUM  read-only     security
delegation.token.secret.key                               PASSWORD  null                 any             MEDIUM  read-only     security
delete.records.purgatory.purge.interval.requests          INT       1                    any             MEDIUM  read-only     waiting
delete.topic.enable                                       BOOLEAN   true                 any             HIGH    read-only     heeded
early.start.listeners                                     LIST      null                 []?             HIGH    read-only     security
errors.deadletterqueue.auto.create.topics.enable          BOOLEAN   false                any             MEDIUM  cluster-wide  heeded
errors.deadletterqueue.topic.name.prefix                  STRING    dlq.                 any             MEDIUM  cluster-wide  heeded
fetch.max.bytes                                           INT       57671680             1024..          MEDIUM  read-only     heeded
fetch.purgatory.purge.interval.requests                   INT       1000                 any             MEDIUM  read-only     waiting
follower.fetch.last.tiered.offset.enable                  BOOLEAN   false                any             MEDIUM  cluster-wide  tiered
follower.replication.throttled.rate                       LONG      9223372036854775807  0..             MEDIUM  cluster-wide  heeded dynamic-only
group.consumer.assignment.interval.ms                     INT       1000                 0..             MEDIUM  cluster-wide  heeded
group.consumer.assignor.offload.enable                    BOOLEAN   true                 any             MEDIUM  cluster-wide  threads internal
group.consumer.assignors                                  LIST      uniform,range        []+             MEDIUM  read-only     heeded
group.consumer.heartbeat.interval.ms                      INT       5000                 1..             MEDIUM  read-only     heeded
group.consumer.max.assignment.interval.ms                 INT       15000                0..             MEDIUM  read-only     heeded
group.consumer.max.heartbeat.interval.ms                  INT       15000                1..             MEDIUM  read-only     heeded
group.consumer.max.session.timeout.ms                     INT       60000                1..             MEDIUM  read-only     heeded
group.consumer.max.size                                   INT       2147483647           1..             MEDIUM  read-only     heeded
group.consumer.migration.policy                           STRING    bidirectional        {DISABLED,DOWNGRADE,UPGRADE,BIDIRECTIONAL}i  MEDIUM  read-only     heeded
group.consumer.min.assignment.interval.ms                 INT       0                    0..             MEDIUM  read-only     heeded
group.consumer.min.heartbeat.interval.ms                  INT       5000                 1..             MEDIUM  read-only     heeded
group.consumer.min.session.timeout.ms                     INT       45000                1..             MEDIUM  read-only     heeded
group.consumer.regex.refresh.interval.ms                  INT       600000               10000..         MEDIUM  read-only     heeded internal
group.consumer.session.timeout.ms                         INT       45000                1..             MEDIUM  read-only     heeded
group.coordinator.append.linger.ms                        INT       -1                   -1..            MEDIUM  read-only     gathering
group.coordinator.background.threads                      INT       2                    1..             HIGH    read-only     threads
group.coordinator.cached.buffer.max.bytes                 INT       1048588              524288..        MEDIUM  cluster-wide  gathering
group.coordinator.rebalance.protocols                     LIST      classic,consumer,streams  [consumer,classic,share,streams]+  MEDIUM  read-only     heeded
group.coordinator.threads                                 INT       4                    1..             HIGH    read-only     threads
group.initial.rebalance.delay.ms                          INT       3000                 any             MEDIUM  read-only     heeded
group.max.session.timeout.ms                              INT       1800000              any             MEDIUM  read-only     heeded
group.max.size                                            INT       2147483647           1..             MEDIUM  read-only     heeded
group.min.session.timeout.ms                              INT       6000                 any             MEDIUM  read-only     heeded
group.share.assignment.interval.ms                        INT       1000                 0..             MEDIUM  cluster-wide  heeded
group.share.assignor.offload.enable                       BOOLEAN   true                 any             MEDIUM  cluster-wide  threads internal
group.share.assignors                                     LIST      simple               []+             MEDIUM  read-only     classes
group.share.delivery.count.limit                          INT       5                    2..10           MEDIUM  read-only     heeded
group.share.dlq.manager.class.name                        STRING    org.apache.kafka.server.share.dlq.DefaultShareGroupDLQManager  any  MEDIUM  read-only     classes internal
group.share.heartbeat.interval.ms                         INT       5000                 1..             MEDIUM  read-only     heeded
group.share.initialize.retry.interval.ms                  INT       30000                1..             LOW     read-only     internal  heeded
group.share.max.assignment.interval.ms                    INT       15000                0..             MEDIUM  read-only     heeded
group.share.max.delivery.count.limit                      INT       10                   5..25           MEDIUM  read-only     heeded
group.share.max.heartbeat.interval.ms                     INT       15000                1..             MEDIUM  read-only     heeded
group.share.max.partition.max.record.locks                INT       4000                 2000..10000     MEDIUM  read-only     heeded
group.share.max.record.lock.duration.ms                   INT       60000                30000..3600000  MEDIUM  read-only     heeded
group.share.max.session.timeout.ms                        INT       60000                1..             MEDIUM  read-only     heeded
group.share.max.share.sessions                            INT       2000                 1..             MEDIUM  read-only     heeded
group.share.max.size                                      INT       200                  1..1000         MEDIUM  read-only     heeded
group.share.min.assignment.interval.ms                    INT       0                    0..             MEDIUM  read-only     heeded
group.share.min.delivery.count.limit                      INT       2                    2..5            MEDIUM  read-only     heeded
group.share.min.heartbeat.interval.ms                     INT       5000                 1..             MEDIUM  read-only     heeded
group.share.min.partition.max.record.locks                INT       100                  100..2000       MEDIUM  read-only     heeded
group.share.min.record.lock.duration.ms                   INT       15000                1000..30000     MEDIUM  read-only     heeded
group.share.min.session.timeout.ms                        INT       45000                1..             MEDIUM  read-only     heeded
group.share.partition.max.record.locks                    INT       2000                 100..10000      MEDIUM  read-only     heeded
group.share.persister.class.name                          STRING    org.apache.kafka.server.share.persister.DefaultStatePersister  any  MEDIUM  read-only     classes internal
group.share.record.lock.duration.ms                       INT       30000                1000..3600000   MEDIUM  read-only     heeded
group.share.session.timeout.ms                            INT       45000                1..             MEDIUM  read-only     heeded
group.streams.acceptable.recovery.lag                     LONG      10000                0..             MEDIUM  read-only     heeded internal
group.streams.assignment.interval.ms                      INT       1000                 0..             MEDIUM  cluster-wide  heeded
group.streams.assignor.offload.enable                     BOOLEAN   true                 any             MEDIUM  cluster-wide  threads internal
group.streams.assignors                                   LIST      sticky               []+             MEDIUM  read-only     heeded
group.streams.heartbeat.interval.ms                       INT       5000                 1..             MEDIUM  read-only     heeded
group.streams.initial.rebalance.delay.ms                  INT       3000                 0..             MEDIUM  read-only     heeded
group.streams.max.assignment.interval.ms                  INT       15000                0..             MEDIUM  read-only     heeded
group.streams.max.heartbeat.interval.ms                   INT       15000                1..             MEDIUM  read-only     heeded
group.streams.max.session.timeout.ms                      INT       60000                1..             MEDIUM  read-only     heeded
group.streams.max.size                                    INT       2147483647           1..             MEDIUM  read-only     heeded
group.streams.max.standby.replicas                        INT       2                    0..             MEDIUM  read-only     heeded
group.streams.max.warmup.replicas                         INT       20                   0..             MEDIUM  read-only     kafka internal
group.streams.min.assignment.interval.ms                  INT       0                    0..             MEDIUM  read-only     heeded
group.streams.min.heartbeat.interval.ms                   INT       5000                 1..             MEDIUM  read-only     heeded
group.streams.min.session.timeout.ms                      INT       45000                1..             MEDIUM  read-only     heeded
group.streams.min.task.offset.interval.ms                 INT       15000                1..             MEDIUM  read-only     heeded internal
group.streams.num.standby.replicas                        INT       0                    0..             MEDIUM  read-only     heeded
group.streams.num.warmup.replicas                         INT       2                    0..             MEDIUM  read-only     kafka internal
group.streams.rack.aware.assignment.tags                  LIST      ""                   []              LOW     read-only     heeded
group.streams.session.timeout.ms                          INT       45000                1..             MEDIUM  read-only     heeded
group.streams.task.offset.interval.ms                     INT       60000                1..             MEDIUM  read-only     heeded internal
group.streams.topology.description.plugin.class           CLASS     null                 any             MEDIUM  read-only     classes
initial.broker.registration.timeout.ms                    INT       60000                any             MEDIUM  read-only     heeded
inter.broker.listener.name                                STRING    null                 any             MEDIUM  read-only     heeded
internal.metadata.delete.delay.millis                     LONG      60000                any             LOW     read-only     heeded internal
internal.metadata.log.segment.bytes                       INT       null                 any             LOW     read-only     heeded internal
internal.metadata.max.batch.size.in.bytes                 INT       8388608              any             LOW     read-only     heeded internal
kafka.metrics.polling.interval.secs                       INT       10                   1..             LOW     read-only     metrics
kafka.metrics.reporters                                   LIST      ""                   []              LOW     read-only     classes
leader.imbalance.check.interval.seconds                   LONG      300                  1..             HIGH    read-only     heeded
leader.replication.throttled.rate                         LONG      9223372036854775807  0..             MEDIUM  cluster-wide  heeded dynamic-only
listener.security.protocol.map                            STRING    SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT  any  LOW  per-broker    heeded
listeners                                                 LIST      PLAINTEXT://:9092    []+             HIGH    per-broker    heeded
log.cleaner.backoff.ms                                    LONG      15000                0..             MEDIUM  cluster-wide  heeded
log.cleaner.dedupe.buffer.size                            LONG      134217728            any             MEDIUM  cluster-wide  heeded
log.cleaner.delete.retention.ms                           LONG      86400000             0..             MEDIUM  cluster-wide  heeded
log.cleaner.enable                                        BOOLEAN   true                 any             MEDIUM  read-only     heeded
log.cleaner.io.buffer.load.factor                         DOUBLE    0.9                  any             MEDIUM  cluster-wide  heeded
log.cleaner.io.buffer.size                                INT       524288               0..             MEDIUM  cluster-wide  gathering
log.cleaner.io.max.bytes.per.second                       DOUBLE    1.7976931348623157E308  any          MEDIUM  cluster-wide  heeded
log.cleaner.max.compaction.lag.ms                         LONG      9223372036854775807  1..             MEDIUM  cluster-wide  heeded
log.cleaner.min.cleanable.ratio                           DOUBLE    0.5                  0..1            MEDIUM  cluster-wide  heeded
log.cleaner.min.compaction.lag.ms                         LONG      0                    0..             MEDIUM  cluster-wide  heeded
log.cleaner.threads                                       INT       1                    0..             MEDIUM  cluster-wide  heeded
log.cleanup.policy                                        LIST      delete               [compact,delete]  MEDIUM  cluster-wide  heeded
log.dir                                                   LIST      /tmp/kafka-logs      []+             HIGH    read-only     heeded
log.dir.failure.timeout.ms                                LONG      30000                1..             LOW     read-only     heeded
log.dirs                                                  LIST      null                 []+?            HIGH    read-only     heeded
log.flush.interval.messages                               LONG      9223372036854775807  1..             HIGH    cluster-wide  heeded
log.flush.interval.ms                                     LONG      null                 any             HIGH    cluster-wide  heeded
log.flush.offset.checkpoint.interval.ms                   INT       60000                0..             HIGH    read-only     heeded
log.flush.scheduler.interval.ms                           LONG      9223372036854775807  any             HIGH    read-only     heeded
log.flush.start.offset.checkpoint.interval.ms             INT       60000                0..             HIGH    read-only     heeded
log.index.interval.bytes                                  INT       4096                 0..             MEDIUM  cluster-wide  heeded
log.index.size.max.bytes                                  INT       10485760             4..             MEDIUM  cluster-wide  heeded
log.initial.task.delay.ms                                 LONG      30000                0..             LOW     read-only     heeded internal
log.local.retention.bytes                                 LONG      -2                   -2..            MEDIUM  cluster-wide  tiered
log.local.retention.ms                                    LONG      -2                   -2..            MEDIUM  cluster-wide  tiered
log.message.timestamp.after.max.ms                        LONG      3600000              0..             MEDIUM  cluster-wide  heeded
log.message.timestamp.before.max.ms                       LONG      9223372036854775807  0..             MEDIUM  cluster-wide  heeded
log.message.timestamp.type                                STRING    CreateTime           {CreateTime,LogAppendTime}  MEDIUM  cluster-wide  heeded
log.preallocate                                           BOOLEAN   false                any             MEDIUM  cluster-wide  growing
log.remote.copy.lag.bytes                                 LONG      -1                   -1..            MEDIUM  cluster-wide  tiered
log.remote.copy.lag.ms                                    LONG      0                    -1..            MEDIUM  cluster-wide  tiered
log.retention.bytes                                       LONG      -1                   any             HIGH    cluster-wide  heeded
log.retention.check.interval.ms                           LONG      300000               1..             MEDIUM  read-only     heeded
log.retention.hours                                       INT       168                  any             HIGH    read-only     heeded
log.retention.minutes                                     INT       null                 any             HIGH    read-only     heeded
log.retention.ms                                          LONG      null                 any             HIGH    cluster-wide  heeded
log.roll.hours                                            INT       168                  1..             HIGH    read-only     heeded
log.roll.jitter.hours                                     INT       0                    0..             HIGH    read-only     heeded
log.roll.jitter.ms                                        LONG      null                 any             HIGH    cluster-wide  heeded
log.roll.ms                                               LONG      null                 any             HIGH    cluster-wide  heeded
log.segment.bytes                                         INT       1073741824           1048576..       HIGH    cluster-wide  heeded
log.segment.delete.delay.ms                               LONG      60000                0..             HIGH    cluster-wide  heeded
max.connection.creation.rate                              INT       2147483647           0..             MEDIUM  cluster-wide  heeded
max.connections                                           INT       2147483647           0..             MEDIUM  cluster-wide  heeded
max.connections.per.ip                                    INT       2147483647           0..             MEDIUM  cluster-wide  heeded
max.connections.per.ip.overrides                          STRING    ""                   any             MEDIUM  cluster-wide  heeded
max.decompressed.message.bytes                            INT       2147483639           1..2147483639   MEDIUM  cluster-wide  heeded
max.incremental.fetch.session.cache.slots                 INT       1000                 0..             MEDIUM  read-only     heeded
max.request.partition.size.limit                          INT       2000                 1..             MEDIUM  read-only     heeded
message.max.bytes                                         INT       1048588              0..             HIGH    cluster-wide  heeded
metadata.log.dir                                          STRING    null                 any             HIGH    read-only     heeded
metadata.log.max.record.bytes.between.snapshots           LONG      20971520             1..             HIGH    read-only     heeded
metadata.log.max.snapshot.interval.ms                     LONG      3600000              0..             HIGH    read-only     heeded
metadata.log.segment.bytes                                INT       1073741824           8388608..       HIGH    read-only     heeded
metadata.log.segment.ms                                   LONG      604800000            any             HIGH    read-only     heeded
metadata.max.idle.interval.ms                             INT       500                  0..             LOW     read-only     heeded
metadata.max.retention.bytes                              LONG      104857600            any             HIGH    read-only     heeded
metadata.max.retention.ms                                 LONG      604800000            any             HIGH    read-only     heeded
metric.reporters                                          LIST      org.apache.kafka.common.metrics.JmxReporter  []  LOW  cluster-wide  classes
metrics.num.samples                                       INT       2                    1..             LOW     read-only     metrics
metrics.recording.level                                   STRING    INFO                 any             LOW     read-only     metrics
metrics.sample.window.ms                                  LONG      30000                1..             LOW     read-only     metrics
min.insync.replicas                                       INT       1                    1..             HIGH    cluster-wide  heeded
node.id                                                   INT       required             0..             HIGH    read-only     heeded
num.io.threads                                            INT       8                    1..             HIGH    cluster-wide  threads
num.network.threads                                       INT       3                    1..             HIGH    cluster-wide  threads
num.partitions                                            INT       1                    1..             MEDIUM  read-only     heeded
num.recovery.threads.per.data.dir                         INT       2                    1..             HIGH    cluster-wide  heeded
num.replica.alter.log.dirs.threads                        INT       null                 any             HIGH    read-only     heeded
num.replica.fetchers                                      INT       1                    1..             HIGH    cluster-wide  heeded
offset.metadata.max.bytes                                 INT       4096                 any             HIGH    read-only     heeded
offsets.commit.timeout.ms                                 INT       5000                 1..             HIGH    read-only     heeded
offsets.load.buffer.size                                  INT       5242880              1..             HIGH    read-only     heeded
offsets.retention.check.interval.ms                       LONG      600000               1..             HIGH    read-only     heeded
offsets.retention.minutes                                 INT       10080                1..             HIGH    read-only     heeded
offsets.topic.compression.codec                           INT       0                    any             HIGH    read-only     heeded
offsets.topic.num.partitions                              INT       50                   1..             HIGH    read-only     heeded
offsets.topic.replication.factor                          SHORT     3                    1..             HIGH    read-only     heeded
offsets.topic.segment.bytes                               INT       104857600            1..             HIGH    read-only     heeded
principal.builder.class                                   CLASS     org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder  any  MEDIUM  per-broker    security
process.roles                                             LIST      required             [broker,controller]+  HIGH  read-only     heeded
producer.id.expiration.check.interval.ms                  INT       600000               1..             LOW     read-only     heeded internal
producer.id.expiration.ms                                 INT       86400000             1..             LOW     cluster-wide  heeded
producer.purgatory.purge.interval.requests                INT       1000                 any             MEDIUM  read-only     waiting
queued.max.request.bytes                                  LONG      -1                   any             MEDIUM  read-only     heeded
queued.max.requests                                       INT       500                  1..             HIGH    read-only     threads
quota.window.num                                          INT       11                   1..             LOW     read-only     heeded
quota.window.size.seconds                                 INT       1                    1..             LOW     read-only     heeded
remote.fetch.max.wait.ms                                  INT       500                  1..             MEDIUM  cluster-wide  tiered
remote.list.offsets.request.timeout.ms                    LONG      30000                1..             MEDIUM  cluster-wide  tiered
remote.log.index.file.cache.total.size.bytes              LONG      1073741824           1..             LOW     cluster-wide  tiered
remote.log.index.file.cache.ttl.ms                        LONG      900000               -1..            LOW     read-only     tiered internal
remote.log.manager.copier.thread.pool.size                INT       10                   1..             MEDIUM  cluster-wide  tiered
remote.log.manager.copy.max.bytes.per.second              LONG      9223372036854775807  1..             MEDIUM  cluster-wide  tiered
remote.log.manager.copy.quota.window.num                  INT       11                   1..             MEDIUM  read-only     tiered
remote.log.manager.copy.quota.window.size.seconds         INT       1                    1..             MEDIUM  read-only     tiered
remote.log.manager.expiration.thread.pool.size            INT       10                   1..             MEDIUM  cluster-wide  tiered
remote.log.manager.fetch.max.bytes.per.second             LONG      9223372036854775807  1..             MEDIUM  cluster-wide  tiered
remote.log.manager.fetch.quota.window.num                 INT       11                   1..             MEDIUM  read-only     tiered
remote.log.manager.fetch.quota.window.size.seconds        INT       1                    1..             MEDIUM  read-only     tiered
remote.log.manager.follower.thread.pool.size              INT       2                    1..             MEDIUM  cluster-wide  tiered
remote.log.manager.task.interval.ms                       LONG      30000                1..             LOW     read-only     tiered
remote.log.manager.task.retry.backoff.max.ms              LONG      30000                1..             LOW     read-only     tiered internal
remote.log.manager.task.retry.backoff.ms                  LONG      500                  1..             LOW     read-only     tiered internal
remote.log.manager.task.retry.jitter                      DOUBLE    0.2                  0..0.5          LOW     read-only     tiered internal
remote.log.manager.thread.pool.size                       INT       2                    1..             MEDIUM  read-only     tiered
remote.log.metadata.custom.metadata.max.bytes             INT       128                  0..             LOW     read-only     tiered
remote.log.metadata.manager.class.name                    STRING    org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager  non-empty  MEDIUM  read-only     tiered
remote.log.metadata.manager.class.path                    STRING    null                 any             MEDIUM  read-only     tiered
remote.log.metadata.manager.impl.prefix                   STRING    rlmm.config.         non-empty       MEDIUM  read-only     tiered
remote.log.metadata.manager.listener.name                 STRING    null                 non-empty       MEDIUM  read-only     tiered
remote.log.reader.max.pending.tasks                       INT       100                  1..             MEDIUM  read-only     tiered
remote.log.reader.threads                                 INT       10                   1..             MEDIUM  cluster-wide  tiered
remote.log.storage.manager.class.name                     STRING    null                 non-empty       MEDIUM  read-only     tiered
remote.log.storage.manager.class.path                     STRING    null                 any             MEDIUM  read-only     tiered
remote.log.storage.manager.impl.prefix                    STRING    rsm.config.          non-empty       MEDIUM  read-only     tiered
remote.log.storage.system.enable                          BOOLEAN   false                any             MEDIUM  read-only     tiered
replica.alter.log.dirs.io.max.bytes.per.second            LONG      9223372036854775807  0..             MEDIUM  cluster-wide  heeded dynamic-only
replica.fetch.backoff.ms                                  INT       1000                 0..             MEDIUM  read-only     heeded
replica.fetch.max.bytes                                   INT       1048576              0..             MEDIUM  read-only     heeded
replica.fetch.min.bytes                                   INT       1                    any             HIGH    read-only     heeded
replica.fetch.response.max.bytes                          INT       10485760             0..             MEDIUM  read-only     heeded
replica.fetch.wait.max.ms                                 INT       500                  any             HIGH    read-only     heeded
replica.high.watermark.checkpoint.interval.ms             LONG      5000                 any             HIGH    read-only     heeded
replica.lag.time.max.ms                                   LONG      30000                any             HIGH    read-only     heeded
replica.selector.class                                    STRING    null                 any             MEDIUM  read-only     heeded
replica.socket.receive.buffer.bytes                       INT       65536                any             HIGH    read-only     heeded
replica.socket.timeout.ms                                 INT       30000                any             HIGH    read-only     heeded
replication.quota.window.num                              INT       11                   1..             LOW     read-only     heeded
replication.quota.window.size.seconds                     INT       1                    1..             LOW     read-only     heeded
request.timeout.ms                                        INT       30000                any             HIGH    read-only     heeded
sasl.client.callback.handler.class                        CLASS     null                 any             MEDIUM  read-only     security
sasl.enabled.mechanisms                                   LIST      GSSAPI               []              MEDIUM  per-broker    security
sasl.jaas.config                                          PASSWORD  null                 any             MEDIUM  per-broker    security
sasl.kerberos.kinit.cmd                                   STRING    /usr/bin/kinit       any             MEDIUM  per-broker    security
sasl.kerberos.min.time.before.relogin                     LONG      60000                any             MEDIUM  per-broker    security
sasl.kerberos.principal.to.local.rules                    LIST      DEFAULT              []              MEDIUM  per-broker    security
sasl.kerberos.service.name                                STRING    null                 any             MEDIUM  per-broker    security
sasl.kerberos.ticket.renew.jitter                         DOUBLE    0.05                 any             MEDIUM  per-broker    security
sasl.kerberos.ticket.renew.window.factor                  DOUBLE    0.8                  any             MEDIUM  per-broker    security
sasl.login.callback.handler.class                         CLASS     null                 any             MEDIUM  read-only     security
sasl.login.class                                          CLASS     null                 any             MEDIUM  read-only     security
sasl.login.connect.timeout.ms                             INT       null                 any             LOW     read-only     security
sasl.login.read.timeout.ms                                INT       null                 any             LOW     read-only     security
sasl.login.refresh.buffer.seconds                         SHORT     300                  any             MEDIUM  per-broker    security
sasl.login.refresh.min.period.seconds                     SHORT     60                   any             MEDIUM  per-broker    security
sasl.login.refresh.window.factor                          DOUBLE    0.8                  any             MEDIUM  per-broker    security
sasl.login.refresh.window.jitter                          DOUBLE    0.05                 any             MEDIUM  per-broker    security
sasl.login.retry.backoff.max.ms                           LONG      10000                any             LOW     read-only     security
sasl.login.retry.backoff.ms                               LONG      100                  any             LOW     read-only     security
sasl.mechanism.controller.protocol                        STRING    GSSAPI               any             HIGH    read-only     security
sasl.mechanism.inter.broker.protocol                      STRING    GSSAPI               any             MEDIUM  per-broker    security
sasl.oauthbearer.allow.unverified.audience                BOOLEAN   false                any             MEDIUM  read-only     security
sasl.oauthbearer.allow.unverified.issuer                  BOOLEAN   false                any             MEDIUM  read-only     security
sasl.oauthbearer.assertion.algorithm                      STRING    RS256                {ES256,RS256}i  MEDIUM  read-only     security
sasl.oauthbearer.assertion.claim.aud                      STRING    null                 any             MEDIUM  read-only     security
sasl.oauthbearer.assertion.claim.exp.seconds              INT       300                  0..86400        LOW     read-only     security
sasl.oauthbearer.assertion.claim.iss                      STRING    null                 any             MEDIUM  read-only     security
sasl.oauthbearer.assertion.claim.jti.include              BOOLEAN   false                any             MEDIUM  read-only     security
sasl.oauthbearer.assertion.claim.nbf.seconds              INT       60                   0..3600         LOW     read-only     security
sasl.oauthbearer.assertion.claim.sub                      STRING    null                 any             MEDIUM  read-only     security
sasl.oauthbearer.assertion.file                           STRING    null                 any             MEDIUM  read-only     security
sasl.oauthbearer.assertion.private.key.file               STRING    null                 any             MEDIUM  read-only     security
sasl.oauthbearer.assertion.private.key.passphrase         PASSWORD  null                 any             MEDIUM  read-only     security
sasl.oauthbearer.assertion.template.file                  STRING    null                 any             MEDIUM  read-only     security
sasl.oauthbearer.client.credentials.client.id             STRING    null                 any             MEDIUM  read-only     security
sasl.oauthbearer.client.credentials.client.secret         PASSWORD  null                 any             MEDIUM  read-only     security
sasl.oauthbearer.clock.skew.seconds                       INT       30                   any             LOW     read-only     security
sasl.oauthbearer.expected.audience                        LIST      ""                   []              HIGH    read-only     security
sasl.oauthbearer.expected.issuer                          STRING    null                 any             HIGH    read-only     security
sasl.oauthbearer.jwks.endpoint.refresh.ms                 LONG      3600000              any             LOW     read-only     security
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms       LONG      10000                any             LOW     read-only     security
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms           LONG      100                  any             LOW     read-only     security
sasl.oauthbearer.jwks.endpoint.url                        STRING    null                 any             MEDIUM  read-only     security
sasl.oauthbearer.jwt.retriever.class                      CLASS     org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever  any  MEDIUM  read-only     security
sasl.oauthbearer.jwt.validator.class                      CLASS     org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator  any  MEDIUM  read-only     security
sasl.oauthbearer.scope                                    STRING    null                 any             MEDIUM  read-only     security
sasl.oauthbearer.scope.claim.name                         STRING    scope                any             LOW     read-only     security
sasl.oauthbearer.sub.claim.name                           STRING    sub                  any             LOW     read-only     security
sasl.oauthbearer.token.endpoint.url                       STRING    null                 any             MEDIUM  read-only     security
sasl.server.callback.handler.class                        CLASS     null                 any             MEDIUM  read-only     security
sasl.server.max.receive.size                              INT       524288               any             MEDIUM  read-only     security
security.inter.broker.protocol                            STRING    PLAINTEXT            {PLAINTEXT,SSL,SASL_PLAINTEXT,SASL_SSL}  MEDIUM  read-only     heeded
security.providers                                        STRING    null                 any             LOW     read-only     security
server.max.startup.time.ms                                LONG      9223372036854775807  0..             MEDIUM  read-only     heeded internal
share.coordinator.append.linger.ms                        INT       -1                   -1..            MEDIUM  read-only     gathering
share.coordinator.cached.buffer.max.bytes                 INT       1048588              524288..        MEDIUM  cluster-wide  gathering
share.coordinator.cold.partition.snapshot.interval.ms     INT       300000               1..             LOW     read-only     internal  heeded
share.coordinator.load.buffer.size                        INT       5242880              1..             HIGH    read-only     heeded
share.coordinator.snapshot.update.records.per.snapshot    INT       500                  0..500          MEDIUM  read-only     heeded
share.coordinator.state.topic.compression.codec           INT       0                    any             HIGH    read-only     heeded
share.coordinator.state.topic.min.isr                     SHORT     2                    1..             HIGH    read-only     heeded
share.coordinator.state.topic.num.partitions              INT       50                   1..             HIGH    read-only     heeded
share.coordinator.state.topic.prune.interval.ms           INT       300000               1..             LOW     read-only     internal  heeded
share.coordinator.state.topic.replication.factor          SHORT     3                    1..             HIGH    read-only     heeded
share.coordinator.state.topic.segment.bytes               INT       104857600            1..             HIGH    read-only     heeded
share.coordinator.threads                                 INT       1                    1..             MEDIUM  read-only     threads
share.coordinator.write.timeout.ms                        INT       5000                 1..             HIGH    read-only     heeded
share.fetch.purgatory.purge.interval.requests             INT       1000                 any             MEDIUM  read-only     waiting
socket.connection.setup.timeout.max.ms                    LONG      30000                any             MEDIUM  read-only     brokers
socket.connection.setup.timeout.ms                        LONG      10000                any             MEDIUM  read-only     brokers
socket.listen.backlog.size                                INT       50                   1..             MEDIUM  read-only     heeded
socket.receive.buffer.bytes                               INT       102400               any             HIGH    read-only     heeded
socket.request.max.bytes                                  INT       104857600            1..             HIGH    read-only     heeded
socket.send.buffer.bytes                                  INT       102400               any             HIGH    read-only     heeded
ssl.allow.dn.changes                                      BOOLEAN   false                any             LOW     read-only     security
ssl.allow.san.changes                                     BOOLEAN   false                any             LOW     read-only     security
ssl.cipher.suites                                         LIST      ""                   []              MEDIUM  per-broker    security
ssl.client.auth                                           STRING    none                 {required,requested,none}  MEDIUM  per-broker    security
ssl.enabled.protocols                                     LIST      TLSv1.2,TLSv1.3      []              MEDIUM  per-broker    security
ssl.endpoint.identification.algorithm                     STRING    https                any             LOW     per-broker    security
ssl.engine.factory.class                                  CLASS     null                 any             LOW     per-broker    security
ssl.key.password                                          PASSWORD  null                 any             MEDIUM  per-broker    security
ssl.keymanager.algorithm                                  STRING    SunX509              any             MEDIUM  per-broker    security
ssl.keystore.certificate.chain                            PASSWORD  null                 any             MEDIUM  per-broker    security
ssl.keystore.key                                          PASSWORD  null                 any             MEDIUM  per-broker    security
ssl.keystore.location                                     STRING    null                 any             MEDIUM  per-broker    security
ssl.keystore.password                                     PASSWORD  null                 any             MEDIUM  per-broker    security
ssl.keystore.type                                         STRING    JKS                  any             MEDIUM  per-broker    security
ssl.principal.mapping.rules                               STRING    DEFAULT              any             LOW     read-only     security
ssl.protocol                                              STRING    TLSv1.3              any             MEDIUM  per-broker    security
ssl.provider                                              STRING    null                 any             MEDIUM  per-broker    security
ssl.secure.random.implementation                          STRING    null                 any             LOW     per-broker    security
ssl.trustmanager.algorithm                                STRING    PKIX                 any             MEDIUM  per-broker    security
ssl.truststore.certificates                               PASSWORD  null                 any             MEDIUM  per-broker    security
ssl.truststore.location                                   STRING    null                 any             MEDIUM  per-broker    security
ssl.truststore.password                                   PASSWORD  null                 any             MEDIUM  per-broker    security
ssl.truststore.type                                       STRING    JKS                  any             MEDIUM  per-broker    security
telemetry.max.bytes                                       INT       1048576              1..             LOW     read-only     heeded
transaction.abort.timed.out.transaction.cleanup.interval.ms  INT    10000                1..             LOW     read-only     heeded
transaction.max.timeout.ms                                INT       900000               1..             HIGH    read-only     heeded
transaction.partition.verification.enable                 BOOLEAN   true                 any             LOW     cluster-wide  heeded
transaction.remove.expired.transaction.cleanup.interval.ms  INT     3600000              1..             LOW     read-only     heeded
transaction.state.log.load.buffer.size                    INT       5242880              1..             HIGH    read-only     heeded
transaction.state.log.min.isr                             INT       2                    1..             HIGH    read-only     heeded
transaction.state.log.num.partitions                      INT       50                   1..             HIGH    read-only     heeded
transaction.state.log.replication.factor                  SHORT     3                    1..             HIGH    read-only     heeded
transaction.state.log.segment.bytes                       INT       104857600            1..             HIGH    read-only     heeded
transaction.two.phase.commit.enable                       BOOLEAN   false                any             LOW     read-only     heeded
transactional.id.expiration.ms                            INT       604800000            1..             HIGH    read-only     heeded
unclean.leader.election.enable                            BOOLEAN   false                any             HIGH    cluster-wide  heeded
unclean.leader.election.interval.ms                       LONG      300000               1..             MEDIUM  read-only     heeded internal
unstable.api.versions.enable                              BOOLEAN   false                any             HIGH    read-only     heeded internal
unstable.feature.versions.enable                          BOOLEAN   false                any             HIGH    read-only     kafka internal
"""

TOPIC = """\
cleanup.policy                           LIST     delete               [compact,delete]    log.cleanup.policy  heeded
compression.gzip.level                   INT      -1                   1..9|-1             compression.gzip.level  heeded
compression.lz4.level                    INT      9                    1..17               compression.lz4.level  heeded
compression.type                         STRING   producer             {uncompressed,zstd,lz4,snappy,gzip,producer}  compression.type  heeded
compression.zstd.level                   INT      3                    -131072..22         compression.zstd.level  heeded
delete.retention.ms                      LONG     86400000             0..                 log.cleaner.delete.retention.ms  heeded
errors.deadletterqueue.group.enable      BOOLEAN  false                any                 -  heeded
file.delete.delay.ms                     LONG     60000                0..                 log.segment.delete.delay.ms  heeded
flush.messages                           LONG     9223372036854775807  1..                 log.flush.interval.messages  heeded
flush.ms                                 LONG     9223372036854775807  0..                 log.flush.interval.ms,log.flush.scheduler.interval.ms  heeded
follower.replication.throttled.replicas  LIST     ""                   throttled-replicas  -  heeded
index.interval.bytes                     INT      4096                 0..                 log.index.interval.bytes  heeded
internal.segment.bytes                   INT      null                 any                 -  heeded internal
leader.replication.throttled.replicas    LIST     ""                   throttled-replicas  -  heeded
local.retention.bytes                    LONG     -2                   -2..                log.local.retention.bytes  tiered
local.retention.ms                       LONG     -2                   -2..                log.local.retention.ms  tiered
max.compaction.lag.ms                    LONG     9223372036854775807  1..                 log.cleaner.max.compaction.lag.ms  heeded
max.decompressed.message.bytes           INT      2147483639           1..2147483639       max.decompressed.message.bytes  heeded
max.message.bytes                        INT      1048588              0..                 message.max.bytes  heeded
message.timestamp.after.max.ms           LONG     3600000              0..                 log.message.timestamp.after.max.ms  heeded
message.timestamp.before.max.ms          LONG     9223372036854775807  0..                 log.message.timestamp.before.max.ms  heeded
message.timestamp.type                   STRING   CreateTime           {CreateTime,LogAppendTime}  log.message.timestamp.type  heeded
min.cleanable.dirty.ratio                DOUBLE   0.5                  0..1                log.cleaner.min.cleanable.ratio  heeded
min.compaction.lag.ms                    LONG     0                    0..                 log.cleaner.min.compaction.lag.ms  heeded
min.insync.replicas                      INT      1                    1..                 min.insync.replicas  heeded
preallocate                              BOOLEAN  false                any                 log.preallocate  growing
remote.copy.lag.bytes                    LONG     -1                   -1..                log.remote.copy.lag.bytes  tiered
remote.copy.lag.ms                       LONG     0                    -1..                log.remote.copy.lag.ms  tiered
remote.log.copy.disable                  BOOLEAN  false                any                 -  tiered
remote.log.delete.on.disable             BOOLEAN  false                any                 -  tiered
remote.storage.enable                    BOOLEAN  false                any                 -  tiered
retention.bytes                          LONG     -1                   any                 log.retention.bytes  heeded
retention.ms                             LONG     604800000            -1..                log.retention.ms,log.retention.minutes*60000,log.retention.hours*3600000  heeded
segment.bytes                            INT      1073741824           1048576..           log.segment.bytes  heeded
segment.index.bytes                      INT      10485760             4..                 log.index.size.max.bytes  heeded
segment.jitter.ms                        LONG     0                    0..                 log.roll.jitter.ms,log.roll.jitter.hours*3600000  heeded
segment.ms                               LONG     604800000            1..                 log.roll.ms,log.roll.hours*3600000  heeded
unclean.leader.election.enable           BOOLEAN  false                any                 unclean.leader.election.enable  heeded
"""

GROUP = """\
consumer.assignment.interval.ms            INT      1000              0..               group.consumer.assignment.interval.ms  heeded
consumer.assignor.offload.enable           BOOLEAN  true              any               group.consumer.assignor.offload.enable  threads internal
consumer.heartbeat.interval.ms             INT      5000              1..               group.consumer.heartbeat.interval.ms  heeded
consumer.session.timeout.ms                INT      45000             1..               group.consumer.session.timeout.ms  heeded
errors.deadletterqueue.copy.record.enable  BOOLEAN  false             any               -  heeded
errors.deadletterqueue.topic.name          STRING   ""                any               -  heeded
share.assignment.interval.ms               INT      1000              0..               group.share.assignment.interval.ms  heeded
share.assignor.offload.enable              BOOLEAN  true              any               group.share.assignor.offload.enable  threads internal
share.auto.offset.reset                    STRING   latest            offset-reset      -  heeded
share.delivery.count.limit                 INT      5                 2..               group.share.delivery.count.limit  heeded
share.heartbeat.interval.ms                INT      5000              1..               group.share.heartbeat.interval.ms  heeded
share.isolation.level                      STRING   read_uncommitted  {read_committed,read_uncommitted}  -  heeded
share.partition.max.record.locks           INT      2000              100..             group.share.partition.max.record.locks  heeded
share.record.lock.duration.ms              INT      30000             1000..            group.share.record.lock.duration.ms  heeded
share.renew.acknowledge.enable             BOOLEAN  true              any               -  heeded
share.session.timeout.ms                   INT      45000             1..               group.share.session.timeout.ms  heeded
streams.acceptable.recovery.lag            LONG     10000             0..               group.streams.acceptable.recovery.lag  heeded internal
streams.assignment.interval.ms             INT      1000              0..               group.streams.assignment.interval.ms  heeded
streams.assignor.name                      STRING   null              any               group.streams.assignors  heeded
streams.assignor.offload.enable            BOOLEAN  true              any               group.streams.assignor.offload.enable  threads internal
streams.heartbeat.interval.ms              INT      5000              1..               group.streams.heartbeat.interval.ms  heeded
streams.initial.rebalance.delay.ms         INT      3000              0..               group.streams.initial.rebalance.delay.ms  heeded
streams.num.standby.replicas               INT      0                 0..               group.streams.num.standby.replicas  heeded
streams.num.warmup.replicas                INT      2                 0..               group.streams.num.warmup.replicas  kafka internal
streams.rack.aware.assignment.tags         LIST     ""                []                group.streams.rack.aware.assignment.tags  heeded
streams.session.timeout.ms                 INT      45000             1..               group.streams.session.timeout.ms  heeded
streams.task.offset.interval.ms            INT      60000             1..               group.streams.task.offset.interval.ms  heeded internal
"""

CLIENT_METRICS = """\
interval.ms  INT   300000  any  heeded
match        LIST  ""      []  heeded
metrics      LIST  ""      []  heeded
"""

QUOTA = """\
connection_creation_rate  INT     2147483647           any  heeded
consumer_byte_rate        LONG    9223372036854775807  any  heeded
controller_mutation_rate  DOUBLE  2.147483647E9        any  heeded
producer_byte_rate        LONG    9223372036854775807  any  heeded
request_percentage        DOUBLE  2.147483647E9        any  heeded
"""
