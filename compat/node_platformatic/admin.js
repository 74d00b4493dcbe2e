'use strict'

const { Admin, ConfigResourceTypes, IncrementalAlterConfigOperationTypes: Change } = require('@platformatic/kafka')

const driver = require('../node_driver/driver.js')

const KINDS = { topic: ConfigResourceTypes.TOPIC, broker: ConfigResourceTypes.BROKER, group: ConfigResourceTypes.GROUP }
const GROUP_TYPES = { classic: 'Classic', consumer: 'Consumer', share: 'Share', streams: 'Streams' }

class AdminCalls {
  constructor (common) {
    this.admin = new Admin(common)
  }

  async call (operation, given) {
    const { admin } = this
    switch (operation) {
      case 'create_topic':
        return this.createTopic(given)
      case 'delete_topic':
        return admin.deleteTopics({ topics: [given.name] })
      case 'list_topics':
        return admin.listTopics()
      case 'describe_topic': {
        const { topics } = await admin.metadata({ topics: [given.name], forceUpdate: true })
        return topics.get(given.name).partitions.map((each, number) => [number, each.leader, each.replicas, each.isr])
      }
      case 'create_partitions':
        return admin.createPartitions({ topics: [{ name: given.topic, count: given.total_count }] })
      case 'describe_cluster': {
        const found = await admin.metadata({ topics: [] })
        return [found.id, found.controllerId, [...found.brokers].map(([id, each]) => [id, `${each.host}:${each.port}`])]
      }
      case 'describe_settings': {
        const [found] = await admin.describeConfigs({ resources: [resource(given.kind, given.name)] })
        return Object.fromEntries(found.configs.map(each => [each.name, each.value]))
      }
      case 'replace_settings':
        return admin.alterConfigs({
          resources: [{ ...resource('topic', given.topic), configs: entries(given.settings) }]
        })
      case 'change_settings':
        return admin.incrementalAlterConfigs({
          resources: [{
            ...resource(given.kind, given.name),
            configs: [
              ...entries(given.put).map(each => ({ ...each, configOperation: Change.SET })),
              ...given.remove.map(name => ({ name, configOperation: Change.DELETE })),
              ...entries(given.append).map(each => ({ ...each, configOperation: Change.APPEND }))
            ]
          }]
        })
      case 'delete_records':
        return this.deleteRecords(given.before)
      case 'log_sizes':
        return this.logSizes(given.topic)
      case 'find_offsets':
        return this.findOffsets(given.partition)
      case 'close':
        return admin.close()
    }
    return this.callOnGroups(operation, given)
  }

  async callOnGroups (operation, given) {
    const { admin } = this
    switch (operation) {
      case 'list_groups':
        return [...(await admin.listGroups({ types: Object.keys(GROUP_TYPES) })).keys()]
      case 'list_group_kinds': {
        const found = await admin.listGroups({ types: Object.keys(GROUP_TYPES) })
        return [...found].map(([name, each]) => [name, GROUP_TYPES[each.groupType]])
      }
      case 'describe_group': {
        const found = (await admin.describeGroups({ groups: [given.group] })).get(given.group)
        if (found.state === 'DEAD' && (await admin.listGroups({ types: ['consumer'] })).has(given.group)) {
          throw new driver.NotOffered('it describes classic groups only')
        }
        return {
          state: found.state.split('_').map(each => each[0] + each.slice(1).toLowerCase()).join(''),
          protocol: found.protocol,
          members: [...found.members.values()].map(member)
        }
      }
      case 'delete_group':
        return admin.deleteGroups({ groups: [given.group] })
      case 'group_offsets': {
        const [found] = await admin.listConsumerGroupOffsets({ groups: [given.group] })
        return found.topics.flatMap(({ name, partitions }) => partitions.map(
          each => [[name, each.partitionIndex], [Number(each.committedOffset), each.metadata ?? '']]))
      }
      case 'alter_group_offsets':
        return admin.alterConsumerGroupOffsets({
          groupId: given.group,
          topics: given.offsets.map(([[name, partition], offset]) =>
            ({ name, partitionOffsets: [{ partition, offset: BigInt(offset) }] }))
        })
      case 'delete_group_offsets':
        await admin.deleteConsumerGroupOffsets({
          groupId: given.group,
          topics: [...driver.byTopic(given.partitions)].map(([name, partitionIndexes]) => ({ name, partitionIndexes }))
        })
        return null
    }
    if (operation in LACKS) {
      throw new driver.NotOffered(LACKS[operation])
    }
    throw driver.unknown(operation)
  }

  async createTopic (given) {
    if (given.validate_only) {
      throw new driver.NotOffered('it cannot validate topics')
    }
    await this.admin.createTopics({
      topics: [given.name],
      partitions: given.partition_count,
      replicas: given.replication_factor,
      configs: entries(given.settings)
    })
  }

  async deleteRecords (before) {
    const topics = before.map(([[name, partition], offset]) =>
      ({ name, partitions: [{ partition, offset: BigInt(offset) }] }))
    const found = await this.admin.deleteRecords({ topics })
    return found.flatMap(({ name, partitions }) =>
      partitions.map(each => [[name, each.partition], Number(each.lowWatermark)]))
  }

  async logSizes (topic) {
    const { topics } = await this.admin.metadata({ topics: [topic], forceUpdate: true })
    const partitions = [...topics.get(topic).partitions.keys()]
    const brokers = await this.admin.describeLogDirs({ topics: [{ name: topic, partitions }] })
    return brokers.flatMap(({ results }) => results).flatMap(each => each.topics)
      .filter(each => each.name === topic)
      .flatMap(each => each.partitions)
      .map(each => [each.partitionIndex, Number(each.partitionSize)])
  }

  async findOffsets ([name, partitionIndex]) {
    const told = {}
    for (const [what, timestamp] of Object.entries(SOUGHT)) {
      const [{ partitions }] = await this.admin.listOffsets({ topics: [{ name, partitions: [{ partitionIndex, timestamp }] }] })
      told[what] = [Number(partitions[0].offset), Number(partitions[0].timestamp)]
    }
    return told
  }
}

const SOUGHT = { earliest: -2n, latest: -1n, 'max-timestamp': -3n, 'earliest-local': -4n, 'latest-tiered': -5n }

function entries (settings) {
  return Object.entries(settings).map(([name, value]) => ({ name, value }))
}

function resource (kind, name) {
  return { resourceType: KINDS[kind], resourceName: name }
}

function member (found) {
  return {
    member_id: found.id,
    client_id: found.clientId,
    host: found.clientHost,
    instance_id: found.groupInstanceId,
    assigned: [...(found.assignments?.values() ?? [])].flatMap(
      ({ topic, partitions }) => partitions.map(each => [topic, each]))
  }
}

const LACKS = {
  describe_topic_by_pages: 'it does not know DescribeTopicPartitions',
  list_config_resources: 'it does not know ListConfigResources',
  remove_member: 'it cannot remove members by their instance id',
  describe_producers: 'it cannot describe producers',
  list_transactions: 'it cannot list transactions',
  describe_transaction: 'it cannot describe transactions',
  fence_producer: 'it cannot fence producers',
  abort_transaction: 'it cannot abort a transaction of others',
  api_versions: "it does not tell the broker's API versions"
}

module.exports = { AdminCalls }
