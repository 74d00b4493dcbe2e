'use strict'

const { CompressionTypes, Partitioners } = require('kafkajs')

const driver = require('../node_driver/driver.js')

const ACKS = { none: 0, leader: 1, all: -1 }
const CODECS = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD
}

// A producer, and what it was told of: kafkajs does not say which partition it chose for which record.
class Chosen {
  constructor () {
    this.partitions = new Map()
    this.partitioner = () => {
      const choose = Partitioners.DefaultPartitioner()
      return asked => {
        const partition = choose(asked)
        this.partitions.set(asked.message, partition)
        return partition
      }
    }
  }

  // The partition of each message.
  take (messages) {
    const found = messages.map(message => this.partitions.get(message))
    this.partitions.clear()
    return found
  }
}

function messageOf (record) {
  const headers = {}
  for (const [name, value] of record.headers) {
    if (value === null) {
      throw new driver.NotOffered('its producer takes no header without a value')
    }
    headers[name] = name in headers ? [headers[name], driver.bytes(value)].flat() : driver.bytes(value)
  }
  return {
    key: driver.bytes(record.key),
    value: driver.bytes(record.value),
    headers,
    ...(record.partition === null ? {} : { partition: record.partition }),
    ...(record.timestamp_ms === null ? {} : { timestamp: String(record.timestamp_ms) })
  }
}

class ProducerCalls {
  static async open (kafka, given) {
    const chosen = new Chosen()
    const producer = kafka.producer({
      idempotent: given.idempotent,
      createPartitioner: chosen.partitioner,
      metadataMaxAge: 1000
    })
    await producer.connect()
    const options = { acks: ACKS[given.acks], compression: CODECS[given.codec] }
    return new ProducerCalls(producer, chosen, options, given.batch_bytes_max)
  }

  constructor (producer, chosen, options, batchBytesMax = null) {
    this.batchBytesMax = batchBytesMax
    this.producer = producer
    this.chosen = chosen
    this.options = options
  }

  async call (operation, given) {
    switch (operation) {
      case 'send':
        return this.send(this.producer, given)
      case 'close':
        return this.producer.disconnect()
    }
    throw driver.unknown(operation)
  }

  async send (sender, given) {
    const places = []
    for (const messages of driver.batches(given.records.map(messageOf), this.batchBytesMax)) {
      const answers = await sender.send({ topic: given.topic, messages, ...this.options })
      const firstOffsets = (answers ?? []).map(each => [each.partition, Number(each.baseOffset)])
      places.push(...driver.placesOf(this.chosen.take(messages), firstOffsets))
    }
    return places
  }
}

class TransactionalProducerCalls extends ProducerCalls {
  static async open (kafka, given) {
    const chosen = new Chosen()
    const producer = kafka.producer({
      idempotent: true,
      transactionalId: given.transactional_id,
      transactionTimeout: given.timeout_ms,
      maxInFlightRequests: 1,
      createPartitioner: chosen.partitioner
    })
    await producer.connect()
    return new TransactionalProducerCalls(producer, chosen, { acks: -1 })
  }

  async call (operation, given) {
    switch (operation) {
      case 'begin':
        this.transaction = await this.producer.transaction()
        return null
      case 'send':
        return this.send(this.transaction, given)
      case 'send_offsets': {
        const topics = new Map()
        for (const [[topic, partition], offset] of given.offsets) {
          topics.set(topic, [...(topics.get(topic) ?? []), { partition, offset: String(offset) }])
        }
        return this.transaction.sendOffsets({
          consumerGroupId: given.group,
          topics: [...topics].map(([topic, partitions]) => ({ topic, partitions }))
        })
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
