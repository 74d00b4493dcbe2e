'use strict'

const { randomUUID } = require('node:crypto')

const driver = require('../node_driver/driver.js')
const { keyOf, partitionOf } = driver

const RESETS = { earliest: true, latest: false }

// A consumer, always a member of a group: kafkajs knows no others.  One that is assigned partitions by hand
// has a group of its own, and takes those of its partitions that it is assigned.
class ConsumerCalls {
  static async open (kafka, given) {
    const admin = kafka.admin()
    await admin.connect()
    return new ConsumerCalls(kafka, admin, given)
  }

  constructor (kafka, admin, given) {
    this.kafka = kafka
    this.admin = admin
    this.given = given
    this.taken = []
    this.owned = new Set()
    this.told = []
    this.positions = new Map()
    this.assigned = null
    this.starts = new Map()
    this.commits = []
  }

  events () {
    const told = this.told
    this.told = []
    return told
  }

  async call (operation, given) {
    switch (operation) {
      case 'subscribe': {
        const topics = given.pattern === null ? given.topics : [new RegExp(`^(?:${given.pattern})$`)]
        return this.join(this.given.group, topics)
      }
      case 'assign':
        this.assigned = new Set(given.partitions.map(each => keyOf(...each)))
        return null
      case 'poll':
        return this.poll(given.wait_ms, given.records_max)
      case 'seek':
        return this.seek(given.partition, given.offset)
      case 'seek_to_beginning':
        return this.seekTo(given.partitions, bounds => bounds.low)
      case 'seek_to_end':
        return this.seekTo(given.partitions, bounds => bounds.high)
      case 'position':
        return this.position(given.partition)
      case 'pause':
        return this.consumer.pause(topicsOf(given.partitions))
      case 'resume':
        return this.consumer.resume(topicsOf(given.partitions))
      case 'partitions_of':
        return this.partitionsOf(given.topic)
      case 'close':
        await this.consumer?.disconnect()
        return this.admin.disconnect()
    }
    return this.callOnOffsets(operation, given)
  }

  async callOnOffsets (operation, given) {
    switch (operation) {
      case 'commit':
        return this.commit(given.offsets)
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
      case 'bounds': {
        const found = await Promise.all(given.partitions.map(each => this.boundsOf(each)))
        return given.partitions.map((each, number) => [each, [found[number].low, found[number].high]])
      }
      case 'find_times':
        return Promise.all(given.times.map(async ([partition, time]) => {
          const found = await this.admin.fetchTopicOffsetsByTimestamp(partition[0], time)
          const { high } = await this.boundsOf(partition)
          const offset = Number(found.find(each => each.partition === partition[1]).offset)
          return [partition, offset < high ? offset : null] // it puts the end for a time behind the last one
        }))
    }
    throw driver.unknown(operation)
  }

  async join (group, topics) {
    const { given } = this
    if (given.new_protocol) {
      throw new driver.NotOffered('it does not know the consumer groups of KIP-848')
    }
    if (given.instance_id !== null) {
      throw new driver.NotOffered('it has no static members')
    }
    if (given.cooperative) {
      throw new driver.NotOffered('it has no cooperative assignor')
    }
    if (!(given.reset in RESETS)) {
      throw new driver.NotOffered('it always resets offsets that are out of range')
    }
    this.consumer = this.kafka.consumer({
      groupId: group,
      sessionTimeout: driver.SESSION_MS,
      heartbeatInterval: driver.HEARTBEAT_MS,
      maxWaitTimeInMs: driver.FETCH_WAIT_MS,
      readUncommitted: !given.committed_only,
      ...(given.fetch_bytes_max === null ? {} : { maxBytesPerPartition: given.fetch_bytes_max }),
      ...(given.metadata_age_ms === null ? {} : { metadataMaxAge: given.metadata_age_ms })
    })
    this.consumer.on(this.consumer.events.GROUP_JOIN, event => this.gain(event.payload.memberAssignment))
    this.consumer.on(this.consumer.events.REBALANCING, () => this.lose())
    this.consumer.on(this.consumer.events.FETCH, () => { this.hasFetched = true })
    this.consumer.on(this.consumer.events.CRASH, event => { this.crash = event.payload.error })
    await this.consumer.connect()
    await this.consumer.subscribe({ topics, fromBeginning: RESETS[given.reset] })
    await this.consumer.run({
      autoCommit: given.auto_commit,
      eachBatchAutoResolve: true,
      partitionsConsumedConcurrently: 8,
      eachBatch: async ({ batch, isStale }) => {
        if (!isStale()) {
          this.taken.push(...batch.messages.map(message => ({ batch, message })))
        }
      }
    })
  }

  gain (assignment) {
    const gained = Object.entries(assignment)
      .flatMap(([topic, numbers]) => numbers.map(number => keyOf(topic, number)))
    this.owned = new Set(gained)
    this.hasFetched = false
    this.told.push(['gained', gained.map(partitionOf)])
  }

  lose () {
    this.told.push(['lost', [...this.owned].map(partitionOf)])
    this.owned.clear()
    this.positions.clear()
    this.taken = []
  }

  // A group of its own is joined once records are wanted.
  async start () {
    if (this.consumer || !this.assigned) {
      return
    }
    const topics = [...new Set([...this.assigned].map(each => partitionOf(each)[0]))]
    await this.join(`reader-${randomUUID()}`, topics)
    await driver.within(30_000, () => this.owned.size)
    for (const key of this.owned) {
      const [topic, partition] = partitionOf(key)
      if (!this.assigned.has(key)) {
        this.consumer.pause([{ topic, partitions: [partition] }])
      } else if (this.starts.has(key)) {
        this.consumer.seek({ topic, partition, offset: String(this.starts.get(key)) })
      }
    }
    this.taken = []
  }

  async poll (waitMs, recordsMax) {
    await this.start()
    await driver.within(waitMs, () => this.taken.length || this.crash)
    if (this.crash) {
      throw this.crash
    }
    const records = this.taken.splice(0, recordsMax)
    return records.map(({ batch, message }) => {
      this.positions.set(keyOf(batch.topic, batch.partition), Number(message.offset) + 1)
      return {
        topic: batch.topic,
        partition: batch.partition,
        offset: Number(message.offset),
        key: driver.text(message.key),
        value: driver.text(message.value),
        headers: Object.entries(message.headers ?? {}).flatMap(
          ([name, values]) => [values].flat().map(value => [name, driver.text(value)])),
        timestamp_ms: Number(message.timestamp)
      }
    })
  }

  // kafkajs does not tell where it is; before the first record that is known once it has asked for some.
  async position (partition) {
    const known = this.positions.get(keyOf(...partition))
    if (known !== undefined || !this.hasFetched) {
      return known ?? -1
    }
    const [[, committed]] = await this.committed([partition])
    const bounds = await this.boundsOf(partition)
    return committed?.[0] ?? (RESETS[this.given.reset] ? bounds.low : bounds.high)
  }

  seek ([topic, partition], offset) {
    const key = keyOf(topic, partition)
    this.starts.set(key, offset)
    this.positions.set(key, offset)
    this.taken = this.taken.filter(({ batch }) => keyOf(batch.topic, batch.partition) !== key)
    this.consumer?.seek({ topic, partition, offset: String(offset) })
  }

  async seekTo (partitions, choose) {
    for (const each of partitions) {
      this.seek(each, choose(await this.boundsOf(each)))
    }
  }

  async boundsOf ([topic, partition]) {
    const found = (await this.admin.fetchTopicOffsets(topic)).find(each => each.partition === partition)
    return { low: Number(found.low), high: Number(found.high) }
  }

  async partitionsOf (topic) {
    try {
      const found = await this.admin.fetchTopicMetadata({ topics: [topic] })
      return found.topics[0].partitions.map(each => each.partitionId)
    } catch (error) {
      if ([...driver.causes(error)].some(each => each.type === 'UNKNOWN_TOPIC_OR_PARTITION')) {
        return []
      }
      throw error
    }
  }

  async commit (offsets) {
    const chosen = offsets ?? [...this.positions].map(([key, offset]) => [partitionOf(key), [offset, '']])
    if (this.consumer) {
      return this.consumer.commitOffsets(chosen.map(([[topic, partition], [offset, metadata]]) =>
        ({ topic, partition, offset: String(offset), metadata })))
    }
    for (const [[topic, partition], [offset, metadata]] of chosen) {
      if (metadata) {
        throw new driver.NotOffered('it commits no texts but as a member')
      }
      const partitions = [{ partition, offset: String(offset) }]
      await this.admin.setOffsets({ groupId: this.given.group, topic, partitions })
    }
  }

  async committed (partitions) {
    const told = []
    for (const [topic, numbers] of driver.byTopic(partitions)) {
      const [found] = await this.admin.fetchOffsets({ groupId: this.given.group, topics: [topic] })
      for (const number of numbers) {
        const each = found.partitions.find(({ partition }) => partition === number)
        const isThere = each !== undefined && each.offset !== '-1'
        told.push([[topic, number], isThere ? [Number(each.offset), each.metadata] : null])
      }
    }
    return told
  }
}

function topicsOf (partitions) {
  return [...driver.byTopic(partitions)].map(([topic, numbers]) => ({ topic, partitions: numbers }))
}

module.exports = { ConsumerCalls }
