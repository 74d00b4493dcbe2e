'use strict'

const { randomUUID } = require('node:crypto')

const { Admin, Consumer, FetchIsolationLevels, ListOffsetTimestamps } = require('@platformatic/kafka')

const driver = require('../node_driver/driver.js')
const { keyOf, partitionOf } = driver

const CONTROL_BIT = 0b100000
const FETCH_BYTES_MAX = 1024 * 1024

// What members of groups and those without a group have in common.
class ConsumerCalls {
  constructor (common, given, options = {}) {
    this.given = given
    this.commits = []
    this.admin = new Admin(common)
    this.consumer = new Consumer({
      ...common,
      groupId: given.group ?? `none-${randomUUID()}`,
      maxWaitTime: driver.FETCH_WAIT_MS,
      isolationLevel: FetchIsolationLevels[given.committed_only ? 'READ_COMMITTED' : 'READ_UNCOMMITTED'],
      maxBytesPerPartition: given.fetch_bytes_max ?? FETCH_BYTES_MAX,
      autocreateTopics: given.may_create_topics ?? true,
      ...options
    })
  }

  async call (operation, given) {
    switch (operation) {
      case 'commit':
        return this.commit(given.offsets ?? this.polled())
      case 'commit_soon': {
        const commit = { isConfirmed: false }
        this.commit(given.offsets).then(
          () => { commit.isConfirmed = true },
          error => { commit.error = error }
        )
        return this.commits.push(commit) - 1
      }
      case 'is_confirmed': {
        const { isConfirmed, error } = this.commits[given.commit]
        if (error) {
          throw error
        }
        return isConfirmed
      }
      case 'committed':
        return this.committed(given.partitions)
      case 'bounds':
        return this.bounds(given.partitions)
      case 'find_times':
        return Promise.all(given.times.map(async ([partition, time]) => {
          const offset = await this.find(partition, BigInt(time))
          return [partition, offset < 0 ? null : offset]
        }))
      case 'partitions_of':
        return this.partitionsOf(given.topic)
      case 'close':
        await this.consumer.close(true)
        return this.admin.close()
    }
    throw driver.unknown(operation)
  }

  async find ([topic, partition], timestamp) {
    const options = { topics: [topic], partitions: { [topic]: [partition] }, timestamp }
    const found = await this.consumer.listOffsetsWithTimestamps(options)
    return Number(found.get(topic).get(partition).offset)
  }

  bounds (partitions) {
    return Promise.all(partitions.map(async each => [each, [
      await this.find(each, ListOffsetTimestamps.EARLIEST),
      await this.find(each, ListOffsetTimestamps.LATEST)
    ]]))
  }

  async partitionsOf (topic) {
    try {
      const found = await this.consumer.metadata({
        topics: [topic], autocreateTopics: this.given.may_create_topics ?? true, forceUpdate: true
      })
      return [...Array(found.topics.get(topic).partitionsCount).keys()]
    } catch (error) {
      if (error.message.startsWith('Unknown topic')) {
        return []
      }
      throw error
    }
  }

  async committed (partitions) {
    const topics = [...driver.byTopic(partitions)].map(([name, partitionIndexes]) => ({ name, partitionIndexes }))
    const [found] = await this.admin.listConsumerGroupOffsets({
      groups: [{ groupId: this.given.group, topics }]
    })
    return found.topics.flatMap(({ name, partitions }) => partitions.map(each => {
      const isThere = each.committedOffset >= 0n
      return [[name, each.partitionIndex], isThere ? [Number(each.committedOffset), each.metadata ?? ''] : null]
    }))
  }
}

// A consumer that is not in a group fetches, and keeps its positions by itself.
class AssignedCalls extends ConsumerCalls {
  constructor (common, given) {
    super(common, given)
    this.positions = new Map()
    this.paused = new Set()
    this.taken = []
  }

  async call (operation, given) {
    switch (operation) {
      case 'assign': {
        const bounds = await this.bounds(given.partitions)
        bounds.forEach(([each, ends]) => this.seek(each, ends[this.given.reset === 'latest' ? 1 : 0]))
        return null
      }
      case 'seek':
        return this.seek(given.partition, given.offset)
      case 'seek_to_beginning':
        return (await this.bounds(given.partitions)).forEach(([each, [first]]) => this.seek(each, first))
      case 'seek_to_end':
        return (await this.bounds(given.partitions)).forEach(([each, [, end]]) => this.seek(each, end))
      case 'position':
        return this.positions.get(keyOf(...given.partition))
      case 'pause':
        return given.partitions.forEach(each => this.paused.add(keyOf(...each)))
      case 'resume':
        return given.partitions.forEach(each => this.paused.delete(keyOf(...each)))
      case 'poll':
        return this.poll(given.wait_ms, given.records_max)
    }
    return super.call(operation, given)
  }

  seek (partition, offset) {
    this.positions.set(keyOf(...partition), offset)
  }

  async poll (waitMs, recordsMax) {
    const end = Date.now() + waitMs
    do {
      const records = await this.fetch(recordsMax)
      if (records.length) {
        return records
      }
    } while (Date.now() < end)
    return []
  }

  async fetch (recordsMax) {
    try {
      return await this.fetchFrom(recordsMax)
    } catch (error) {
      const isOutOfRange = [...driver.causes(error)].some(each => each.apiCode === driver.OFFSET_OUT_OF_RANGE)
      if (isOutOfRange && this.given.reset !== 'none') {
        throw new driver.NotOffered('it does not reset an offset that is out of range')
      }
      throw error
    }
  }

  async fetchFrom (recordsMax) {
    const wanted = [...this.positions.keys()].filter(key => !this.paused.has(key)).map(partitionOf)
    if (!wanted.length) {
      await driver.pause(driver.FETCH_WAIT_MS)
      return []
    }
    const numbers = driver.byTopic(wanted)
    const metadata = await this.consumer.metadata({ topics: [...numbers.keys()] })
    const names = new Map([...numbers.keys()].map(topic => [metadata.topics.get(topic).id, topic]))
    const response = await this.consumer.fetch({
      node: metadata.topics.get(wanted[0][0]).partitions[wanted[0][1]].leader,
      maxWaitTime: driver.FETCH_WAIT_MS,
      topics: [...names].map(([topicId, topic]) => ({
        topicId,
        partitions: numbers.get(topic).map(partition => ({
          partition,
          currentLeaderEpoch: -1,
          lastFetchedEpoch: -1,
          fetchOffset: BigInt(this.positions.get(keyOf(topic, partition))),
          partitionMaxBytes: this.given.fetch_bytes_max ?? FETCH_BYTES_MAX
        }))
      }))
    })
    const records = []
    for (const { topicId, partitions } of response.responses) {
      for (const { partitionIndex, records: batches } of partitions) {
        for (const batch of batches ?? []) {
          this.take(names.get(topicId), partitionIndex, batch, records, recordsMax)
        }
      }
    }
    return records
  }

  take (topic, partition, batch, records, recordsMax) {
    const key = keyOf(topic, partition)
    if (!(batch.attributes & CONTROL_BIT)) {
      for (const record of batch.records) {
        const offset = Number(batch.firstOffset) + record.offsetDelta
        if (offset < this.positions.get(key)) {
          continue
        }
        if (records.length >= recordsMax) {
          return
        }
        records.push(told({ ...record, topic, partition, offset, timestamp: batch.firstTimestamp + record.timestampDelta }))
        this.seek([topic, partition], offset + 1)
      }
    }
    this.seek([topic, partition], Number(batch.firstOffset) + batch.lastOffsetDelta + 1)
  }
}

// A member of a group reads from a stream of the library, once it subscribes.
class MemberCalls extends ConsumerCalls {
  constructor (common, given) {
    const group = {
      groupProtocol: given.new_protocol ? 'consumer' : 'classic',
      autocommit: given.auto_commit,
      ...(given.instance_id === null ? {} : { groupInstanceId: given.instance_id })
    }
    const sessions = { sessionTimeout: driver.SESSION_MS, heartbeatInterval: driver.HEARTBEAT_MS, rebalanceTimeout: 60_000 }
    super(common, given, given.new_protocol ? group : { ...group, ...sessions })
    if (given.cooperative) {
      throw new driver.NotOffered('it has no cooperative assignor')
    }
    this.taken = []
    this.known = new Set()
    this.last = new Map()
  }

  // What the group has changed since the last call; the library tells of it after the fact.
  events () {
    const owned = this.owned()
    const told = [
      ['lost', [...this.known].filter(each => !owned.has(each)).map(partitionOf)],
      ['gained', [...owned].filter(each => !this.known.has(each)).map(partitionOf)]
    ]
    this.known = owned
    this.taken = this.taken.filter(each => owned.has(keyOf(each.topic, each.partition)))
    return told.filter(([, partitions]) => partitions.length)
  }

  owned () {
    return new Set((this.consumer.assignments ?? []).flatMap(
      ({ topic, partitions }) => partitions.map(each => keyOf(topic, each))))
  }

  async call (operation, given) {
    switch (operation) {
      case 'subscribe':
        return this.subscribe(given)
      case 'assign':
        return null // only to commit without joining
      case 'poll':
        await driver.within(given.wait_ms, () => this.taken.length || this.failure)
        if (this.failure) {
          throw this.failure
        }
        return this.taken.splice(0, given.records_max).map(message => {
          this.last.set(keyOf(message.topic, message.partition), message)
          return told(message)
        })
      case 'seek':
      case 'pause':
        throw new driver.NotOffered(`members of its groups cannot ${operation}`)
      case 'position':
        return Number(this.last.has(keyOf(...given.partition))
          ? this.last.get(keyOf(...given.partition)).offset + 1n
          : this.stream?.offsetsToFetch.get(`${given.partition[0]}:${given.partition[1]}`) ?? -1)
      case 'close':
        await this.stream?.close()
    }
    return super.call(operation, given)
  }

  async subscribe ({ topics, pattern }) {
    if (pattern !== null) {
      throw new driver.NotOffered('its groups take no patterns')
    }
    this.stream = await this.consumer.consume({
      topics,
      mode: 'committed',
      fallbackMode: { earliest: 'earliest', latest: 'latest', none: 'fail' }[this.given.reset]
    })
    this.stream.on('data', message => {
      if (this.owned().has(keyOf(message.topic, message.partition))) { // what it has lost may still come
        this.taken.push(message)
      }
    })
    this.stream.on('error', error => { this.failure = error })
  }

  polled () {
    return [...this.last].map(([key, message]) => [partitionOf(key), [Number(message.offset) + 1, '']])
  }

  messageBefore (partition, offset) {
    return { ...this.last.get(keyOf(...partition)), offset: BigInt(offset - 1) }
  }

  async commit (offsets) {
    if (offsets.some(([, [, metadata]]) => metadata)) {
      throw new driver.NotOffered('it commits no texts')
    }
    if (this.stream) {
      return this.consumer.commit({
        offsets: offsets.map(([[topic, partition], [offset]]) =>
          ({ topic, partition, offset: BigInt(offset), leaderEpoch: -1 }))
      })
    }
    const table = new Map()
    for (const [[topic, partition], [offset]] of offsets) {
      table.set(topic, [...(table.get(topic) ?? []), { partition, offset: BigInt(offset) }])
    }
    return this.admin.alterConsumerGroupOffsets({
      groupId: this.given.group,
      topics: [...table].map(([name, partitionOffsets]) => ({ name, partitionOffsets }))
    })
  }
}

function told (record) {
  return {
    topic: record.topic,
    partition: record.partition,
    offset: Number(record.offset),
    key: driver.text(record.key),
    value: driver.text(record.value),
    headers: [...record.headers].map(([name, value]) => [String(name ?? ''), driver.text(value)]),
    timestamp_ms: Number(record.timestamp)
  }
}

module.exports = { AssignedCalls, MemberCalls }
