'use strict'

const zlib = require('node:zlib')

const { Producer, compatibilityPartitioner } = require('@platformatic/kafka')

const driver = require('../node_driver/driver.js')

const ACKS = { none: 0, leader: 1, all: -1 }

function messageOf (topic, record) {
  return {
    topic,
    key: driver.bytes(record.key) ?? undefined,
    value: driver.bytes(record.value) ?? undefined,
    headers: new Map(record.headers.map(
      ([name, value]) => [Buffer.from(name), driver.bytes(value) ?? undefined])),
    ...(record.partition === null ? {} : { partition: record.partition }),
    ...(record.timestamp_ms === null ? {} : { timestamp: BigInt(record.timestamp_ms) })
  }
}

class ProducerCalls {
  constructor (common, given, options = {}) {
    if (given.codec === 'zstd' && !zlib.zstdCompressSync) {
      throw new driver.NotOffered('it leaves zstd to Node, which has it since 22.15')
    }
    this.batchBytesMax = given.batch_bytes_max ?? null
    this.hashes = new Map()
    this.producer = new Producer({
      ...common,
      acks: ACKS[given.acks],
      compression: given.codec,
      idempotent: given.idempotent,
      autocreateTopics: true,
      partitioner: (message, key) => this.choose(message, key),
      ...options
    })
  }

  // It does not say which partition it has chosen.  What the partitioner gives is taken modulo their number.
  choose (message, key) {
    const hash = key ? compatibilityPartitioner(message, key) : 0
    this.hashes.set(message, hash)
    return hash
  }

  async call (operation, given) {
    switch (operation) {
      case 'send':
        return this.send(this.producer, given)
      case 'close':
        return this.producer.close(true)
    }
    throw driver.unknown(operation)
  }

  async send (sender, { topic, records }) {
    const places = []
    for (const messages of driver.batches(records.map(each => messageOf(topic, each)), this.batchBytesMax)) {
      const { offsets } = await sender.send({ messages })
      const count = this.producer.currentMetadata.topics.get(topic).partitionsCount
      const partitions = messages.map(each => each.partition ?? this.hashes.get(each) % count)
      this.hashes.clear()
      places.push(...driver.placesOf(partitions, (offsets ?? []).map(each => [each.partition, Number(each.offset)])))
    }
    return places
  }
}

class TransactionalProducerCalls extends ProducerCalls {
  constructor (common, given) {
    super(common, { acks: 'all', codec: 'none', idempotent: true }, {
      transactionalId: given.transactional_id,
      timeout: given.timeout_ms // also how long a transaction may take
    })
  }

  async call (operation, given) {
    switch (operation) {
      case 'begin':
        this.transaction = await this.producer.beginTransaction()
        return null
      case 'send':
        return this.send(this.transaction, given)
      case 'send_offsets': {
        const member = driver.opened(given.consumer)
        await this.transaction.addConsumer(member.consumer)
        for (const [partition, offset] of given.offsets) {
          await this.transaction.addOffset(member.messageBefore(partition, offset))
        }
        return null
      }
      case 'commit':
        return this.transaction.commit()
      case 'abort':
        return this.transaction.abort()
    }
    return super.call(operation, given)
  }
}

module.exports = { ProducerCalls, TransactionalProducerCalls }
