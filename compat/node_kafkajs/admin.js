'use strict'

const { AssignerProtocol, ConfigResourceTypes } = require('kafkajs')

const driver = require('../node_driver/driver.js')

const TOPIC_ALREADY_EXISTS = 36

class AdminCalls {
  static async open (kafka) {
    const admin = kafka.admin()
    await admin.connect()
    return new AdminCalls(admin)
  }

  constructor (admin) {
    this.admin = admin
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
        const { topics } = await admin.fetchTopicMetadata({ topics: [given.name] })
        return topics[0].partitions
          .map(each => [each.partitionId, each.leader, each.replicas, each.isr])
          .sort(([first], [second]) => first - second)
      }
      case 'create_partitions':
        await admin.createPartitions({ topicPartitions: [{ topic: given.topic, count: given.total_count }] })
        return null
      case 'describe_cluster': {
        const found = await admin.describeCluster()
        const brokers = found.brokers.map(each => [each.nodeId, `${each.host}:${each.port}`])
        return [found.clusterId, found.controller, brokers]
      }
      case 'describe_settings':
        return this.describeSettings(given)
      case 'replace_settings':
        await admin.alterConfigs({
          resources: [{ ...resource('topic', given.topic), configEntries: entries(given.settings) }]
        })
        return null
      case 'delete_records':
        return this.deleteRecords(given.before)
      case 'close':
        return admin.disconnect()
    }
    return this.callOnGroups(operation, given)
  }

  async callOnGroups (operation, given) {
    const { admin } = this
    switch (operation) {
      case 'list_groups':
        return (await admin.listGroups()).groups.map(each => each.groupId)
      case 'describe_group': {
        const [found] = (await admin.describeGroups([given.group])).groups
        return { state: found.state, protocol: found.protocol, members: found.members.map(member) }
      }
      case 'delete_group':
        await admin.deleteGroups([given.group])
        return null
      case 'group_offsets': {
        const found = await admin.fetchOffsets({ groupId: given.group })
        return found.flatMap(({ topic, partitions }) =>
          partitions.map(each => [[topic, each.partition], [Number(each.offset), each.metadata]]))
      }
      case 'alter_group_offsets':
        for (const [[topic, partition], offset] of given.offsets) {
          const partitions = [{ partition, offset: String(offset) }]
          await admin.setOffsets({ groupId: given.group, topic, partitions })
        }
        return null
    }
    if (operation in LACKS) {
      throw new driver.NotOffered(LACKS[operation])
    }
    throw driver.unknown(operation)
  }

  async createTopic (given) {
    const isNew = await this.admin.createTopics({
      validateOnly: given.validate_only,
      waitForLeaders: false,
      topics: [{
        topic: given.name,
        numPartitions: given.partition_count,
        replicationFactor: given.replication_factor,
        configEntries: entries(given.settings)
      }]
    })
    if (!isNew) { // that is how it tells
      throw new driver.Refused(TOPIC_ALREADY_EXISTS, `${given.name} is there`)
    }
  }

  async describeSettings ({ kind, name }) {
    const found = await this.admin.describeConfigs({ resources: [resource(kind, name)], includeSynonyms: false })
    return Object.fromEntries(found.resources[0].configEntries.map(each => [each.configName, each.configValue]))
  }

  async deleteRecords (before) {
    for (const [[topic, partition], offset] of before) {
      await this.admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: String(offset) }] })
    }
    const told = []
    for (const [[topic, partition]] of before) { // which it does not tell by itself
      const found = await this.admin.fetchTopicOffsets(topic)
      told.push([[topic, partition], Number(found.find(each => each.partition === partition).low)])
    }
    return told
  }
}

function entries (settings) {
  return Object.entries(settings).map(([name, value]) => ({ name, value }))
}

function resource (kind, name) {
  if (!['topic', 'broker'].includes(kind)) {
    throw new driver.NotOffered('it does not know settings of groups')
  }
  return { type: ConfigResourceTypes[kind.toUpperCase()], name }
}

function member (found) {
  const { assignment } = AssignerProtocol.MemberAssignment.decode(found.memberAssignment) ?? { assignment: {} }
  return {
    member_id: found.memberId,
    client_id: found.clientId,
    host: found.clientHost,
    instance_id: null,
    assigned: Object.entries(assignment).flatMap(([topic, numbers]) => numbers.map(number => [topic, number]))
  }
}

const LACKS = {
  describe_topic_by_pages: 'it does not know DescribeTopicPartitions',
  change_settings: 'it does not know IncrementalAlterConfigs',
  list_config_resources: 'it does not know ListConfigResources',
  list_group_kinds: 'it does not tell of what kind a group is',
  remove_member: 'it cannot remove members of groups',
  delete_group_offsets: "it cannot delete a group's offsets",
  find_offsets: 'its admin client cannot look up the offset of the latest timestamp',
  log_sizes: 'it cannot describe log directories',
  describe_producers: 'it cannot describe producers',
  list_transactions: 'it cannot list transactions',
  describe_transaction: 'it cannot describe transactions',
  fence_producer: 'it cannot fence producers',
  abort_transaction: 'it cannot abort a transaction of others',
  api_versions: "it does not tell the broker's API versions"
}

module.exports = { AdminCalls }
