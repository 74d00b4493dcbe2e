# ruff: noqa: E501  (a table is read across)
"""One sentence per setting, for DescribeConfigs with documentation.  Loaded when somebody asks for it.

A broker setting that only gives a topic or group setting its default has the text of that one.
"""

from broker.config.definitions import Scope, definitions

TOPIC = """\
cleanup.policy                           What happens to old data: delete removes segments, compact keeps the last record of each key; both may be combined, and an empty list keeps everything.
compression.gzip.level                   How hard gzip tries when the broker compresses; -1 is gzip's own default.
compression.lz4.level                    How hard lz4 tries when the broker compresses.
compression.type                         How the broker stores batches; producer keeps what the producer chose.
compression.zstd.level                   How hard zstd tries when the broker compresses.
delete.retention.ms                      How long a compacted topic keeps the markers of deleted keys.
errors.deadletterqueue.group.enable      Whether share groups may use this topic for records that could not be processed.
file.delete.delay.ms                     How long the files of removed segments and partitions stay before they are deleted.
flush.messages                           After how many records a partition is forced to disk.
flush.ms                                 After how long a partition with unflushed records is forced to disk.
follower.replication.throttled.replicas  Whose replicas are throttled on the follower's side, as partition:broker pairs, or * for all.
index.interval.bytes                     How many bytes of records lie between two entries of the offset index.
internal.segment.bytes                   Size at which a segment is full, without a lower limit; for tests.
leader.replication.throttled.replicas    Whose replicas are throttled on the leader's side, as partition:broker pairs, or * for all.
local.retention.bytes                    How much a tiered topic keeps on local disks; -2 means retention.bytes.
local.retention.ms                       How long a tiered topic keeps records on local disks; -2 means retention.ms.
max.compaction.lag.ms                    After how long at the latest a record becomes part of compaction.
max.decompressed.message.bytes           How large one record may be when the broker decompresses it.
max.message.bytes                        How large a batch may be, as it is stored.
message.timestamp.after.max.ms           How far ahead of the broker's clock a record's timestamp may be.
message.timestamp.before.max.ms          How far behind the broker's clock a record's timestamp may be.
message.timestamp.type                   Whose time a record carries: the producer's (CreateTime) or the broker's (LogAppendTime).
min.cleanable.dirty.ratio                Which part of a compacted log must be uncompacted before it is compacted again.
min.compaction.lag.ms                    How long a record is safe from compaction.
min.insync.replicas                      How many replicas must have a record before acks=all is answered with success.
preallocate                              Whether a new segment's file gets its full size at once.
remote.copy.lag.bytes                    How many bytes may remain uncopied to the remote tier.
remote.copy.lag.ms                       How long a finished segment may remain uncopied to the remote tier.
remote.log.copy.disable                  Whether a tiered topic stops copying new segments to the remote tier.
remote.log.delete.on.disable             Whether remote data is deleted when tiering is turned off for the topic.
remote.storage.enable                    Whether the topic has a remote tier.
retention.bytes                          How large a partition may grow before its oldest segments are deleted; -1 is no limit.
retention.ms                             How long records are kept before their segments are deleted; -1 is for ever.
segment.bytes                            Size at which a segment is full and the next one begins.
segment.index.bytes                      How large a segment's index files may grow.
segment.jitter.ms                        By how much, at random, a segment's life may be shortened, so that not all end together.
segment.ms                               Age at which a segment ends even if it is not full.
unclean.leader.election.enable           Whether a replica that is not in sync may become leader as a last resort, losing records.
"""

GROUP = """\
consumer.assignment.interval.ms            How often at most a consumer group's assignment is computed.
consumer.assignor.offload.enable           Whether a consumer group's assignment is computed in the background.
consumer.heartbeat.interval.ms             How often members of a consumer group are told to report.
consumer.session.timeout.ms                After how long without a report a member of a consumer group is given up.
errors.deadletterqueue.copy.record.enable  Whether the dead letter topic gets the record itself, or only what describes it.
errors.deadletterqueue.topic.name          The topic for records that the share group could not process; empty for none.
share.assignment.interval.ms               How often at most a share group's assignment is computed.
share.assignor.offload.enable              Whether a share group's assignment is computed in the background.
share.auto.offset.reset                    Where a share group begins to read a partition: latest, earliest, or a duration ago.
share.delivery.count.limit                 How often at most a record is delivered to a share group.
share.heartbeat.interval.ms                How often members of a share group are told to report.
share.isolation.level                      Whether a share group also gets records of transactions that are undecided or aborted.
share.partition.max.record.locks           How many records of a partition may be out with members of a share group at once.
share.record.lock.duration.ms              How long a member of a share group may keep a record before others get it.
share.renew.acknowledge.enable             Whether members of a share group may ask to keep a record for longer.
share.session.timeout.ms                   After how long without a report a member of a share group is given up.
streams.acceptable.recovery.lag            How many offsets a copy may lack and still count as caught up.
streams.assignment.interval.ms             How often at most a streams group's assignment is computed.
streams.assignor.name                      Which of the broker's task assignors a streams group uses.
streams.assignor.offload.enable            Whether a streams group's assignment is computed in the background.
streams.heartbeat.interval.ms              How often members of a streams group are told to report.
streams.initial.rebalance.delay.ms         How long a new streams group waits for further members before its first assignment.
streams.num.standby.replicas               How many standby copies each task of a streams group has.
streams.num.warmup.replicas                How many tasks of a streams group may warm up elsewhere at once.
streams.rack.aware.assignment.tags         Client tags over which standby copies are spread.
streams.session.timeout.ms                 After how long without a report a member of a streams group is given up.
streams.task.offset.interval.ms            How often members of a streams group report how far their tasks are.
"""

CLIENT_METRICS = """\
interval.ms  How often clients of this subscription push their metrics.
match        Which clients the subscription is for, as parameter=expression pairs.
metrics      Prefixes of the metrics that are wanted; empty for none, * for all.
"""

QUOTA = """\
connection_creation_rate  Connections a second that one address may open.
consumer_byte_rate        Bytes a second that a consumer may read from one broker.
controller_mutation_rate  Partitions a second that a client may create or delete.
producer_byte_rate        Bytes a second that a producer may write to one broker.
request_percentage        Percentage of the broker's threads that a client's requests may take.
"""

BROKER = """\
add.partitions.to.txn.retry.backoff.max.ms            How long the broker waits at most before it asks again to add partitions to a transaction.
add.partitions.to.txn.retry.backoff.ms                How long the broker waits before it asks again to add partitions to a transaction.
advertised.listeners                                  The addresses that clients and other nodes are told, if they differ from listeners.
alter.config.policy.class.name                        A class that has a say in every alteration of settings.
alter.log.dirs.replication.quota.window.num           How many samples the quota for moves between log directories remembers.
alter.log.dirs.replication.quota.window.size.seconds  How long each sample of the quota for moves between log directories is.
authorizer.class.name                                 The class that decides who may do what; empty lets everybody do everything.
auto.create.topics.enable                             Whether asking for a topic that does not exist creates it.
auto.leader.rebalance.enable                          Whether leadership goes back to the preferred replicas by itself.
background.threads                                    How many threads do background work.
broker.heartbeat.interval.ms                          How often a broker reports to the controller.
broker.id                                             Old name of node.id.
broker.rack                                           The rack, or zone, in which the broker stands.
broker.session.timeout.ms                             After how long without a report the controller fences a broker.
client.quota.callback.class                           A class that decides which quota a client has.
config.providers                                      Names of the sources from which placeholders in the values of a properties file are filled in, each with a class: config.providers.<name>.class.
connection.failed.authentication.delay.ms             How long a failed authentication is answered late, against guessing.
connections.max.idle.ms                               How long a connection may be idle before it is closed.
connections.max.reauth.ms                             After how long an authenticated connection must authenticate again; 0 is never.
controlled.shutdown.enable                            Whether a stopping broker first hands its leaderships to others.
controller.listener.names                             Which listeners are the controller's.
controller.performance.always.log.threshold.ms        From which duration on a controller event is always logged.
controller.performance.sample.period.ms               How often the controller logs its slowest events.
controller.quorum.append.linger.ms                    How long the metadata leader waits for more records before it flushes.
controller.quorum.auto.join.enable                    Whether a controller joins the voters of its cluster by itself.
controller.quorum.bootstrap.servers                   Addresses at which the controllers are found.
controller.quorum.election.backoff.max.ms             How long a voter waits at most before it tries the next election.
controller.quorum.election.timeout.ms                 How long a candidate waits for votes before it tries again.
controller.quorum.fetch.max.bytes                     How much one fetch of metadata may return.
controller.quorum.fetch.snapshot.max.bytes            How much of a snapshot one request may return.
controller.quorum.fetch.timeout.ms                    After how long without the leader a voter becomes a candidate.
controller.quorum.request.timeout.ms                  How long a node waits for an answer from the quorum.
controller.quorum.retry.backoff.ms                    How long a node waits before it asks the quorum again.
controller.quorum.voters                              The controllers of a static quorum, as id@host:port.
controller.quota.window.num                           How many samples the quota for changes of the cluster remembers.
controller.quota.window.size.seconds                  How long each sample of the quota for changes of the cluster is.
controller.socket.timeout.ms                          How long a connection to the controller waits for an answer.
cordoned.log.dirs                                     Log directories that get no new partitions; * for all.
create.topic.policy.class.name                        A class that has a say in every creation of a topic.
default.replication.factor                            How many replicas a topic has when nobody says.
delegation.token.expiry.check.interval.ms             How often expired delegation tokens are looked for.
delegation.token.expiry.time.ms                       How long a delegation token is valid before it must be renewed.
delegation.token.max.lifetime.ms                      How long a delegation token can be renewed.
delegation.token.secret.key                           The key with which delegation tokens are made; the same on every node.
delete.records.purgatory.purge.interval.requests      After how many requests waiting record deletions are tidied up.
delete.topic.enable                                   Whether topics can be deleted.
early.start.listeners                                 Listeners that open before the others are ready.
errors.deadletterqueue.auto.create.topics.enable      Whether a dead letter topic that does not exist is created.
errors.deadletterqueue.topic.name.prefix              How the names of dead letter topics must begin; empty for any.
fetch.max.bytes                                       How much one fetch may return, whatever the client asks for.
fetch.purgatory.purge.interval.requests               After how many requests waiting fetches are tidied up.
follower.fetch.last.tiered.offset.enable              Whether a new follower begins behind what is in the remote tier.
follower.replication.throttled.rate                   Bytes a second that throttled followers may copy.
group.consumer.assignors                              The assignors that consumer groups can use; the first is the default.
group.consumer.max.assignment.interval.ms             The longest assignment interval that a consumer group may have.
group.consumer.max.heartbeat.interval.ms              The longest heartbeat interval that a consumer group may have.
group.consumer.max.session.timeout.ms                 The longest session timeout that a consumer group may have.
group.consumer.max.size                               How many members a consumer group may have.
group.consumer.migration.policy                       Whether a group with members may change between the classic and the consumer protocol.
group.consumer.min.assignment.interval.ms             The shortest assignment interval that a consumer group may have.
group.consumer.min.heartbeat.interval.ms              The shortest heartbeat interval that a consumer group may have.
group.consumer.min.session.timeout.ms                 The shortest session timeout that a consumer group may have.
group.consumer.regex.refresh.interval.ms              How often topic patterns of consumer groups are resolved anew.
group.coordinator.append.linger.ms                    How long the group coordinator gathers writes before it appends them; -1 decides by itself.
group.coordinator.background.threads                  How many threads compute assignments in the background.
group.coordinator.cached.buffer.max.bytes             How large a write buffer may be to be kept for reuse.
group.coordinator.rebalance.protocols                 Which group protocols are enabled.
group.coordinator.threads                             How many threads the group coordinator has.
group.initial.rebalance.delay.ms                      How long an empty classic group waits for further members before its first rebalance.
group.max.session.timeout.ms                          The longest session timeout that a member of a classic group may ask for.
group.max.size                                        How many members a classic group may have.
group.min.session.timeout.ms                          The shortest session timeout that a member of a classic group may ask for.
group.share.assignors                                 The assignor of share groups.
group.share.dlq.manager.class.name                    The class that writes to dead letter topics.
group.share.initialize.retry.interval.ms              How long the broker waits before it initializes a share group's state again.
group.share.max.assignment.interval.ms                The longest assignment interval that a share group may have.
group.share.max.delivery.count.limit                  The highest delivery count limit that a share group may have.
group.share.max.heartbeat.interval.ms                 The longest heartbeat interval that a share group may have.
group.share.max.partition.max.record.locks            The highest number of locked records that a share group may have.
group.share.max.record.lock.duration.ms               The longest record lock that a share group may have.
group.share.max.session.timeout.ms                    The longest session timeout that a share group may have.
group.share.max.share.sessions                        How many share sessions a broker keeps.
group.share.max.size                                  How many members a share group may have.
group.share.min.assignment.interval.ms                The shortest assignment interval that a share group may have.
group.share.min.delivery.count.limit                  The lowest delivery count limit that a share group may have.
group.share.min.heartbeat.interval.ms                 The shortest heartbeat interval that a share group may have.
group.share.min.partition.max.record.locks            The lowest number of locked records that a share group may have.
group.share.min.record.lock.duration.ms               The shortest record lock that a share group may have.
group.share.min.session.timeout.ms                    The shortest session timeout that a share group may have.
group.share.persister.class.name                      The class that stores the state of share groups.
group.streams.assignors                               The task assignors that streams groups can use; the first is the default.
group.streams.max.assignment.interval.ms              The longest assignment interval that a streams group may have.
group.streams.max.heartbeat.interval.ms               The longest heartbeat interval that a streams group may have.
group.streams.max.session.timeout.ms                  The longest session timeout that a streams group may have.
group.streams.max.size                                How many members a streams group may have.
group.streams.max.standby.replicas                    The highest number of standby copies that a streams group may have.
group.streams.max.warmup.replicas                     The highest number of warm-up tasks that a streams group may have.
group.streams.min.assignment.interval.ms              The shortest assignment interval that a streams group may have.
group.streams.min.heartbeat.interval.ms               The shortest heartbeat interval that a streams group may have.
group.streams.min.session.timeout.ms                  The shortest session timeout that a streams group may have.
group.streams.min.task.offset.interval.ms             The shortest interval between reports of task offsets that a streams group may have.
group.streams.topology.description.plugin.class       A class that receives the descriptions of topologies.
initial.broker.registration.timeout.ms                How long a starting broker tries to register before it gives up.
inter.broker.listener.name                            The listener by which brokers talk to each other.
internal.metadata.delete.delay.millis                 How long removed files of the metadata log stay; for tests.
internal.metadata.log.segment.bytes                   Segment size of the metadata log, without a lower limit; for tests.
internal.metadata.max.batch.size.in.bytes             How large a batch of the metadata log may be; for tests.
kafka.metrics.polling.interval.secs                   How often metrics reporters of the old kind are asked to report.
kafka.metrics.reporters                               Classes of metrics reporters of the old kind.
leader.imbalance.check.interval.seconds               How often the controller looks for leaders that are not the preferred ones.
leader.replication.throttled.rate                     Bytes a second that leaders send to throttled followers.
listener.security.protocol.map                        Which security protocol each listener speaks.
listeners                                             The addresses on which the node listens.
log.cleaner.backoff.ms                                How long the cleaner sleeps when there is nothing to clean.
log.cleaner.dedupe.buffer.size                        Memory of all cleaner threads for finding repeated keys.
log.cleaner.enable                                    Whether logs are cleaned at all.
log.cleaner.io.buffer.load.factor                     How full the cleaner's buffer of keys may be.
log.cleaner.io.buffer.size                            Memory of all cleaner threads for reading and writing.
log.cleaner.io.max.bytes.per.second                   How fast the cleaner may read and write.
log.cleaner.threads                                   How many threads clean logs.
log.dir                                               The log directory, where log.dirs does not name any.
log.dir.failure.timeout.ms                            How long a broker with a failed log directory may be unable to tell the controller.
log.dirs                                              The directories in which partitions are kept.
log.flush.offset.checkpoint.interval.ms               How often it is noted down up to where logs are flushed.
log.flush.scheduler.interval.ms                       How often the broker looks for logs that must be flushed.
log.flush.start.offset.checkpoint.interval.ms         How often it is noted down where logs begin.
log.initial.task.delay.ms                             How long after the start housekeeping begins; for tests.
log.retention.check.interval.ms                       How often the broker looks for data that can be deleted.
log.retention.hours                                   How many hours records are kept, where log.retention.ms and log.retention.minutes do not say.
log.retention.minutes                                 How many minutes records are kept, where log.retention.ms does not say.
log.roll.hours                                        Age in hours at which a segment ends, where log.roll.ms does not say.
log.roll.jitter.hours                                 By how many hours at most a segment's life is shortened at random, where log.roll.jitter.ms does not say.
max.connection.creation.rate                          How many connections a second are accepted.
max.connections                                       How many connections the broker keeps.
max.connections.per.ip                                How many connections one address may have.
max.connections.per.ip.overrides                      How many connections certain addresses may have, as host:count pairs.
max.incremental.fetch.session.cache.slots             How many incremental fetch sessions the broker keeps.
max.request.partition.size.limit                      How many partitions one answer to DescribeTopicPartitions may hold.
metadata.log.dir                                      The directory of the metadata log, if it is not the first log directory.
metadata.log.max.record.bytes.between.snapshots       After how many bytes of metadata a snapshot is written.
metadata.log.max.snapshot.interval.ms                 After how long a snapshot of the metadata is written, if there is anything new.
metadata.log.segment.bytes                            Size at which a segment of the metadata log is full.
metadata.log.segment.ms                               Age at which a segment of the metadata log ends.
metadata.max.idle.interval.ms                         How often the controller writes an empty record when nothing happens; 0 is never.
metadata.max.retention.bytes                          How large the metadata log may grow before old snapshots and segments are deleted.
metadata.max.retention.ms                             How long old snapshots and segments of the metadata log are kept.
metric.reporters                                      Classes that are told of metrics.
metrics.num.samples                                   From how many samples metrics are computed.
metrics.recording.level                               Which metrics are recorded.
metrics.sample.window.ms                              How long a sample of a metric is.
node.id                                               The number of this node in the cluster.
num.io.threads                                        How many threads handle requests.
num.network.threads                                   How many threads of each listener read and write.
num.partitions                                        How many partitions a topic has when nobody says.
num.recovery.threads.per.data.dir                     How many threads recover and flush the logs of one directory.
num.replica.alter.log.dirs.threads                    How many threads move replicas between log directories.
num.replica.fetchers                                  How many threads copy from each leader.
offset.metadata.max.bytes                             How long the text beside a committed offset may be.
offsets.commit.timeout.ms                             How long writes of the group coordinator wait for their replicas.
offsets.load.buffer.size                              How much is read at once when group offsets are loaded.
offsets.retention.check.interval.ms                   How often expired offsets are looked for.
offsets.retention.minutes                             How long offsets are kept that no member of a group needs any more.
offsets.topic.compression.codec                       The number of the codec for group offsets.
offsets.topic.num.partitions                          How many partitions the topic of group offsets has.
offsets.topic.replication.factor                      How many replicas the topic of group offsets has.
offsets.topic.segment.bytes                           Segment size of the topic of group offsets.
principal.builder.class                               The class that says who a connection belongs to.
process.roles                                         What this node is: broker, controller, or both.
producer.id.expiration.check.interval.ms              How often idle producers are looked for.
producer.id.expiration.ms                             After how long an idle producer is forgotten.
producer.purgatory.purge.interval.requests            After how many requests waiting produce requests are tidied up.
queued.max.request.bytes                              How many bytes of requests may wait before nothing more is read; -1 is no limit.
queued.max.requests                                   How many requests may wait before nothing more is read.
quota.window.num                                      How many samples client quotas remember.
quota.window.size.seconds                             How long each sample of client quotas is.
remote.fetch.max.wait.ms                              How long a fetch waits for the remote tier.
remote.list.offsets.request.timeout.ms                How long a search for offsets waits for the remote tier.
remote.log.index.file.cache.total.size.bytes          How large the local cache of remote index files may grow.
remote.log.index.file.cache.ttl.ms                    How long an unused remote index file stays in the cache.
remote.log.manager.copier.thread.pool.size            How many threads copy segments to the remote tier.
remote.log.manager.copy.max.bytes.per.second          How fast segments are copied to the remote tier.
remote.log.manager.copy.quota.window.num              How many samples the quota for copies to the remote tier remembers.
remote.log.manager.copy.quota.window.size.seconds     How long each sample of the quota for copies to the remote tier is.
remote.log.manager.expiration.thread.pool.size        How many threads delete expired remote segments.
remote.log.manager.fetch.max.bytes.per.second         How fast data is read from the remote tier.
remote.log.manager.fetch.quota.window.num             How many samples the quota for reads from the remote tier remembers.
remote.log.manager.fetch.quota.window.size.seconds    How long each sample of the quota for reads from the remote tier is.
remote.log.manager.follower.thread.pool.size          How many threads do the remote tier's work of followers.
remote.log.manager.task.interval.ms                   How often the work of the remote tier is done.
remote.log.manager.task.retry.backoff.max.ms          How long the remote tier waits at most before it tries again.
remote.log.manager.task.retry.backoff.ms              How long the remote tier waits before it tries again.
remote.log.manager.task.retry.jitter                  By which part, at random, the remote tier's waits differ.
remote.log.manager.thread.pool.size                   How many threads the remote tier has.
remote.log.metadata.custom.metadata.max.bytes         How much a remote storage plugin may note down beside a segment.
remote.log.metadata.manager.class.name                The class that keeps track of remote segments.
remote.log.metadata.manager.class.path                Where the class that keeps track of remote segments is found.
remote.log.metadata.manager.impl.prefix               How the settings begin that are for the class which keeps track of remote segments.
remote.log.metadata.manager.listener.name             The listener by which remote segments are kept track of.
remote.log.reader.max.pending.tasks                   How many reads from the remote tier may wait.
remote.log.reader.threads                             How many threads read from the remote tier.
remote.log.storage.manager.class.name                 The class that stores remote segments.
remote.log.storage.manager.class.path                 Where the class that stores remote segments is found.
remote.log.storage.manager.impl.prefix                How the settings begin that are for the class which stores remote segments.
remote.log.storage.system.enable                      Whether there is a remote tier.
replica.alter.log.dirs.io.max.bytes.per.second        Bytes a second for moves between log directories.
replica.fetch.backoff.ms                              How long a follower waits after an error before it fetches again.
replica.fetch.max.bytes                               How much a follower fetches of one partition at once.
replica.fetch.min.bytes                               How much a follower waits for before its fetch is answered.
replica.fetch.response.max.bytes                      How much a follower fetches at once.
replica.fetch.wait.max.ms                             How long a follower's fetch waits for new records.
replica.high.watermark.checkpoint.interval.ms         How often high watermarks are noted down.
replica.lag.time.max.ms                               After how long a follower that does not keep up is out of sync.
replica.selector.class                                A class that chooses from which replica a consumer reads.
replica.socket.receive.buffer.bytes                   Receive buffer of a follower's connections; -1 leaves it to the system.
replica.socket.timeout.ms                             How long a follower waits for an answer.
replication.quota.window.num                          How many samples replication quotas remember.
replication.quota.window.size.seconds                 How long each sample of replication quotas is.
request.timeout.ms                                    How long the broker waits for answers from other nodes.
sasl.client.callback.handler.class                    A class that supplies what the broker authenticates with as a client.
sasl.enabled.mechanisms                               The SASL mechanisms that clients may use.
sasl.jaas.config                                      The login of a listener and a mechanism, in JAAS form.
sasl.kerberos.kinit.cmd                               The path of kinit.
sasl.kerberos.min.time.before.relogin                 How long Kerberos logins are apart at least.
sasl.kerberos.principal.to.local.rules                Rules that turn Kerberos principals into short names.
sasl.kerberos.service.name                            The Kerberos principal as which brokers run.
sasl.kerberos.ticket.renew.jitter                     By which part, at random, Kerberos renewals differ.
sasl.kerberos.ticket.renew.window.factor              At which part of its life a Kerberos ticket is renewed.
sasl.login.callback.handler.class                     A class that supplies what a login needs.
sasl.login.class                                      The class that logs in.
sasl.login.connect.timeout.ms                         How long a login waits for a connection to the identity provider.
sasl.login.read.timeout.ms                            How long a login waits for an answer of the identity provider.
sasl.login.refresh.buffer.seconds                     How long before its end a credential is refreshed at the latest.
sasl.login.refresh.min.period.seconds                 How long refreshes of a credential are apart at least.
sasl.login.refresh.window.factor                      At which part of its life a credential is refreshed.
sasl.login.refresh.window.jitter                      By which part, at random, refreshes of credentials differ.
sasl.login.retry.backoff.max.ms                       How long a login waits at most before it tries again.
sasl.login.retry.backoff.ms                           How long a login waits before it tries again.
sasl.mechanism.controller.protocol                    The SASL mechanism between brokers and controllers.
sasl.mechanism.inter.broker.protocol                  The SASL mechanism between brokers.
sasl.oauthbearer.allow.unverified.audience            Whether a token is accepted without a look at its audience.
sasl.oauthbearer.allow.unverified.issuer              Whether a token is accepted without a look at its issuer.
sasl.oauthbearer.assertion.algorithm                  The algorithm that signs an assertion.
sasl.oauthbearer.assertion.claim.aud                  The audience of an assertion.
sasl.oauthbearer.assertion.claim.exp.seconds          How long an assertion is valid.
sasl.oauthbearer.assertion.claim.iss                  The issuer of an assertion.
sasl.oauthbearer.assertion.claim.jti.include          Whether each assertion has an id of its own.
sasl.oauthbearer.assertion.claim.nbf.seconds          How long before its making an assertion becomes valid.
sasl.oauthbearer.assertion.claim.sub                  The subject of an assertion.
sasl.oauthbearer.assertion.file                       A file that holds an assertion made elsewhere.
sasl.oauthbearer.assertion.private.key.file           The file of the key that signs assertions.
sasl.oauthbearer.assertion.private.key.passphrase     The passphrase of the key that signs assertions.
sasl.oauthbearer.assertion.template.file              A file with further headers and claims of assertions.
sasl.oauthbearer.client.credentials.client.id         The client id for the identity provider.
sasl.oauthbearer.client.credentials.client.secret     The client secret for the identity provider.
sasl.oauthbearer.clock.skew.seconds                   How far clocks may differ when a token is judged.
sasl.oauthbearer.expected.audience                    The audiences that a token may be for.
sasl.oauthbearer.expected.issuer                      The issuer that a token must have.
sasl.oauthbearer.jwks.endpoint.refresh.ms             How often the issuer's keys are fetched again.
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms   How long fetching the issuer's keys waits at most before it is tried again.
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms       How long fetching the issuer's keys waits before it is tried again.
sasl.oauthbearer.jwks.endpoint.url                    Where the issuer's keys are.
sasl.oauthbearer.jwt.retriever.class                  The class that gets tokens.
sasl.oauthbearer.jwt.validator.class                  The class that judges tokens.
sasl.oauthbearer.scope                                The scope that is asked of the identity provider.
sasl.oauthbearer.scope.claim.name                     The claim that holds a token's scope.
sasl.oauthbearer.sub.claim.name                       The claim that holds a token's subject.
sasl.oauthbearer.token.endpoint.url                   Where tokens are asked for.
sasl.server.callback.handler.class                    A class that judges what clients authenticate with.
sasl.server.max.receive.size                          How large a message of a client may be before it is authenticated.
security.inter.broker.protocol                        The security protocol between brokers, where no listener is named for it.
security.providers                                    Classes that provide security algorithms.
server.max.startup.time.ms                            How long the start may take before it is given up.
share.coordinator.append.linger.ms                    How long the share coordinator gathers writes before it appends them; -1 decides by itself.
share.coordinator.cached.buffer.max.bytes             How large a write buffer of the share coordinator may be to be kept for reuse.
share.coordinator.cold.partition.snapshot.interval.ms How often idle share partitions are written down anew.
share.coordinator.load.buffer.size                    How much is read at once when the state of share groups is loaded.
share.coordinator.snapshot.update.records.per.snapshot How many updates of a share partition's state follow each full one.
share.coordinator.state.topic.compression.codec       The number of the codec for the state of share groups.
share.coordinator.state.topic.min.isr                 How many replicas of the state of share groups must have a write.
share.coordinator.state.topic.num.partitions          How many partitions the topic of share group state has.
share.coordinator.state.topic.prune.interval.ms       How often state of share groups that is not needed any more is removed.
share.coordinator.state.topic.replication.factor      How many replicas the topic of share group state has.
share.coordinator.state.topic.segment.bytes           Segment size of the topic of share group state.
share.coordinator.threads                             How many threads the share coordinator has.
share.coordinator.write.timeout.ms                    How long writes of the share coordinator wait for their replicas.
share.fetch.purgatory.purge.interval.requests         After how many requests waiting share fetches are tidied up.
socket.connection.setup.timeout.max.ms                How long making a connection may take at most, after failures.
socket.connection.setup.timeout.ms                    How long making a connection may take.
socket.listen.backlog.size                            How many connections may wait to be accepted.
socket.receive.buffer.bytes                           Receive buffer of connections; -1 leaves it to the system.
socket.request.max.bytes                              How large a request may be.
socket.send.buffer.bytes                              Send buffer of connections; -1 leaves it to the system.
ssl.allow.dn.changes                                  Whether a new certificate may have another name.
ssl.allow.san.changes                                 Whether a new certificate may lack alternative names of the old one.
ssl.cipher.suites                                     The cipher suites that may be used; empty for all.
ssl.client.auth                                       Whether clients must, may or need not show a certificate.
ssl.enabled.protocols                                 The TLS versions that may be used.
ssl.endpoint.identification.algorithm                 How a host's name is compared with its certificate; empty for not at all.
ssl.engine.factory.class                              A class that makes TLS engines.
ssl.key.password                                      The password of the private key.
ssl.keymanager.algorithm                              The algorithm of the key manager.
ssl.keystore.certificate.chain                        The certificate chain, in PEM form.
ssl.keystore.key                                      The private key, in PEM form.
ssl.keystore.location                                 The file of the key store.
ssl.keystore.password                                 The password of the key store.
ssl.keystore.type                                     The format of the key store.
ssl.principal.mapping.rules                           Rules that turn a certificate's name into a principal.
ssl.protocol                                          The TLS version that is tried first.
ssl.provider                                          The provider of TLS.
ssl.secure.random.implementation                      The source of random numbers for TLS.
ssl.trustmanager.algorithm                            The algorithm of the trust manager.
ssl.truststore.certificates                           The trusted certificates, in PEM form.
ssl.truststore.location                               The file of the trust store.
ssl.truststore.password                               The password of the trust store.
ssl.truststore.type                                   The format of the trust store.
telemetry.max.bytes                                   How much a client may push as metrics at once.
transaction.abort.timed.out.transaction.cleanup.interval.ms How often transactions that took too long are looked for.
transaction.max.timeout.ms                            The longest timeout that a transaction may have.
transaction.partition.verification.enable             Whether a partition's leader asks whether a transaction includes it.
transaction.remove.expired.transaction.cleanup.interval.ms How often forgotten transactional ids are looked for.
transaction.state.log.load.buffer.size                How much is read at once when the state of transactions is loaded.
transaction.state.log.min.isr                         How many replicas of the state of transactions must have a write.
transaction.state.log.num.partitions                  How many partitions the topic of transaction state has.
transaction.state.log.replication.factor              How many replicas the topic of transaction state has.
transaction.state.log.segment.bytes                   Segment size of the topic of transaction state.
transaction.two.phase.commit.enable                   Whether transactions may be part of a two-phase commit.
transactional.id.expiration.ms                        After how long an unused transactional id is forgotten.
unclean.leader.election.interval.ms                   How often the controller looks for partitions that need an unclean election.
unstable.api.versions.enable                          Whether versions of APIs are served that are not final yet.
unstable.feature.versions.enable                      Whether feature levels are allowed that are not final yet.
"""

_TEXTS = {
    Scope.BROKER: BROKER,
    Scope.TOPIC: TOPIC,
    Scope.GROUP: GROUP,
    Scope.CLIENT_METRICS: CLIENT_METRICS,
    Scope.QUOTA: QUOTA,
}
_read: dict[Scope, dict[str, str]] = {}


def documentation(scope: Scope, name: str) -> str | None:
    """What the setting is for, in a sentence; None for a name that is no setting."""
    texts = _read.get(scope)
    if texts is None:
        texts = _read[scope] = dict(_entries(scope))
    return texts.get(name)


def _entries(scope: Scope) -> list[tuple[str, str]]:
    entries: list[tuple[str, str]] = []
    if scope is Scope.BROKER:
        for kind in (Scope.TOPIC, Scope.GROUP):
            for known in definitions(kind):
                text = documentation(kind, known.name)
                for name, _ in known.synonyms:
                    entries.append((name, f"Default of the {kind.value} setting {known.name}. {text}"))
    for line in _TEXTS[scope].splitlines():
        name, text = line.split(maxsplit=1)
        entries.append((name, text))
    return entries
