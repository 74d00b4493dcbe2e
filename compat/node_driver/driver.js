// What drivers of Node's clients share: lines of JSON in, lines of JSON out, as
// compat/scenarios/remote/process.py describes them.
'use strict'

const readline = require('node:readline')

// Times as compat/scenarios/python/client.py has them.
const SESSION_MS = 6000
const HEARTBEAT_MS = 200
const FETCH_WAIT_MS = 100

const OFFSET_OUT_OF_RANGE = 1
const FENCED = new Set(['INVALID_PRODUCER_EPOCH', 'INVALID_TXN_STATE', 'INVALID_PRODUCER_ID_MAPPING', 'PRODUCER_FENCED'])
const COMMIT_FAILED = new Set(['ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID', 'REBALANCE_IN_PROGRESS'])

// The library has no way to do what it is asked for; the text says what is missing.
class NotOffered extends Error {}

// The broker answered with an error.
class Refused extends Error {
  constructor (code, text) {
    super(text)
    this.code = code
  }
}

const subjects = []

function write (line) {
  process.stdout.write(JSON.stringify(line) + '\n')
}

// Carries out calls until the input ends.  `open` makes an object of the library by the operation that asks
// for it; `refusal` finds in an error what the broker answered, {code, name}, or nothing.
function serve (client, version, open, refusal) {
  const library = {
    async call (operation, given) {
      subjects.push(await open(operation, given))
      return subjects.length - 1
    }
  }
  subjects.push(library)
  write({ client, version })
  const input = readline.createInterface({ input: process.stdin })
  input.on('line', line => answer(JSON.parse(line), refusal))
  input.on('close', () => process.exit(0))
}

// The object of a number.
function opened (number) {
  return subjects[number]
}

async function answer (asked, refusal) {
  const subject = subjects[asked.on]
  let told
  try {
    told = { gives: (await subject.call(asked.do, asked.with)) ?? null }
  } catch (error) {
    told = failure(error, refusal)
  }
  const events = subject.events ? subject.events() : []
  write({ id: asked.id, ...told, ...(events.length ? { events } : {}) })
}

function failure (error, refusal) {
  if (error instanceof NotOffered) {
    return { error: 'not offered', text: error.message }
  }
  if (error instanceof Refused) {
    return { error: 'refused', code: error.code, text: error.message }
  }
  const refused = refusal(error)
  if (refused && FENCED.has(refused.name)) {
    return { error: 'fenced', text: error.message }
  }
  if (refused && COMMIT_FAILED.has(refused.name)) {
    return { error: 'commit failed', text: error.message }
  }
  if (refused && refused.code > 0) {
    return { error: 'refused', code: refused.code, text: error.message }
  }
  const texts = new Set([...causes(error)].map(each => `${each.name}: ${each.message}`))
  return { error: 'failed', text: [...texts].join(', from ') }
}

// The errors that an error comes from, itself first.
function * causes (error) {
  const seen = new Set()
  const waiting = [error]
  while (waiting.length) {
    const next = waiting.shift()
    if (next && typeof next === 'object' && !seen.has(next)) {
      seen.add(next)
      yield next
      const several = [next.errors, next.groups, next.partitions].filter(Array.isArray)
      waiting.push(next.cause, next.originalError, next.error, ...several.flat())
    }
  }
}

function unknown (operation) {
  return new Error(`no such operation: ${operation}`)
}

// Returns what `find` gives as soon as it gives something, or undefined when the time is over.
async function within (milliseconds, find) {
  const end = Date.now() + milliseconds
  for (;;) {
    const found = find()
    if (found || Date.now() >= end) {
      return found
    }
    await pause(Math.min(10, milliseconds))
  }
}

function pause (milliseconds) {
  return new Promise(resolve => setTimeout(resolve, milliseconds))
}

function bytes (text) {
  return text === null ? null : Buffer.from(text, 'base64')
}

function text (content) {
  return content === null || content === undefined ? null : Buffer.from(content).toString('base64')
}

// A name for a partition in tables.
function keyOf (topic, number) {
  return `${number} ${topic}`
}

// The reverse of keyOf.
function partitionOf (key) {
  const blank = key.indexOf(' ')
  return [key.slice(blank + 1), Number(key.slice(0, blank))]
}

// The numbers of each topic's partitions.
function byTopic (partitions) {
  const table = new Map()
  for (const [topic, number] of partitions) {
    table.set(topic, [...(table.get(topic) ?? []), number])
  }
  return table
}

// What to send one after the other, for those who put all that they are given for a partition into one batch.
function * batches (records, bytesMax) {
  let batch = []
  let size = 0
  for (const record of records) {
    const added = (record.key?.length ?? 0) + (record.value?.length ?? 0)
    if (bytesMax !== null && batch.length && size + added > bytesMax) {
      yield batch
      batch = []
      size = 0
    }
    batch.push(record)
    size += added
  }
  yield batch
}

// Where records are, by the partitions that were chosen for them and the first offset on each.
function placesOf (partitions, firstOffsets) {
  const next = new Map(firstOffsets)
  return partitions.map(partition => {
    const offset = next.get(partition) ?? -1
    next.set(partition, offset < 0 ? offset : offset + 1)
    return [partition, offset]
  })
}

module.exports = {
  SESSION_MS,
  HEARTBEAT_MS,
  FETCH_WAIT_MS,
  OFFSET_OUT_OF_RANGE,
  NotOffered,
  Refused,
  serve,
  opened,
  causes,
  unknown,
  within,
  pause,
  batches,
  placesOf,
  bytes,
  text,
  keyOf,
  partitionOf,
  byTopic
}
