// Carries out calls with kafkajs.
'use strict'

const { Kafka, CompressionCodecs, CompressionTypes, logLevel } = require('kafkajs')
const { version } = require('kafkajs/package.json')
const snappy = require('kafkajs-snappy')
const lz4 = require('lz4-napi')
const zstd = require('@bokuweb/zstd-wasm')

const driver = require('../node_driver/driver.js')
const { AdminCalls } = require('./admin.js')
const { ConsumerCalls } = require('./consumer.js')
const { ProducerCalls, TransactionalProducerCalls } = require('./producer.js')

// kafkajs itself knows gzip only, and takes others from whoever has them.
CompressionCodecs[CompressionTypes.Snappy] = snappy
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: async encoder => lz4.compressFrame(encoder.buffer),
  decompress: async buffer => lz4.decompressFrame(buffer)
})
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async encoder => Buffer.from(zstd.compress(encoder.buffer)),
  decompress: async buffer => Buffer.from(zstd.decompress(buffer))
})

function library (given) {
  return new Kafka({
    clientId: 'kafkajs',
    brokers: [given.address],
    connectionTimeout: 10_000,
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 50, retries: 8, maxRetryTime: 2000 }
  })
}

async function open (operation, given) {
  switch (operation) {
    case 'producer':
      return ProducerCalls.open(library(given), given)
    case 'transactional_producer':
      return TransactionalProducerCalls.open(library(given), given)
    case 'consumer':
      return ConsumerCalls.open(library(given), given)
    case 'share_consumer':
      throw new driver.NotOffered('it has no share consumer')
    case 'admin':
      return AdminCalls.open(library(given))
  }
  throw driver.unknown(operation)
}

function refusal (error) {
  for (const each of driver.causes(error)) {
    if (Number.isInteger(each.code) && typeof each.type === 'string') {
      return { code: each.code, name: each.type }
    }
    if (Number.isInteger(each.errorCode) && each.errorCode > 0) {
      return { code: each.errorCode, name: '' }
    }
  }
}

zstd.init().then(() => driver.serve('kafkajs', version, open, refusal))
