// Carries out calls with @platformatic/kafka.
'use strict'

const { clientSoftwareVersion } = require('@platformatic/kafka')

const driver = require('../node_driver/driver.js')
const { AdminCalls } = require('./admin.js')
const { AssignedCalls, MemberCalls } = require('./consumer.js')
const { ProducerCalls, TransactionalProducerCalls } = require('./producer.js')

function common (given) {
  return {
    clientId: 'platformatic',
    bootstrapBrokers: [given.address],
    retries: 20,
    retryDelay: 100,
    metadataMaxAge: given.metadata_age_ms ?? 5000
  }
}

async function open (operation, given) {
  switch (operation) {
    case 'producer':
      return new ProducerCalls(common(given), given)
    case 'transactional_producer':
      return new TransactionalProducerCalls(common(given), given)
    case 'consumer':
      return given.group === null ? new AssignedCalls(common(given), given) : new MemberCalls(common(given), given)
    case 'share_consumer':
      throw new driver.NotOffered('it has no share consumer')
    case 'admin':
      return new AdminCalls(common(given))
  }
  throw driver.unknown(operation)
}

function refusal (error) {
  for (const each of driver.causes(error)) {
    if (each.apiCode > 0) { // the error of a single record comes with one that is unknown
      return { code: each.apiCode, name: each.apiId }
    }
  }
}

driver.serve('@platformatic/kafka', clientSoftwareVersion, open, refusal)
