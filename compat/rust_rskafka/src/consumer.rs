use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::{join_all, try_join_all};
use rskafka::client::Client;
use rskafka::client::partition::{OffsetAt, PartitionClient, UnknownTopicHandling};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::failures::Failure;
use crate::{Outcome, connect, values};

const FETCH_WAIT_MS: i32 = 100;
const FETCH_BYTES_MAX: i32 = 50 * 1024 * 1024;
const OFFSET_OUT_OF_RANGE: i16 = 1;

type Partition = (String, i32);

#[derive(Default)]
struct State {
    clients: BTreeMap<Partition, Arc<PartitionClient>>,
    /// Of what is assigned.
    positions: BTreeMap<Partition, i64>,
    paused: BTreeSet<Partition>,
}

/// Reads partitions one by one: the library has no consumer that is more.
pub struct Consumer {
    client: Client,
    reset: String,
    fetch_bytes_max: i32,
    state: Mutex<State>,
}

impl Consumer {
    pub async fn open(with: &Value) -> Result<Self, Failure> {
        if !with["group"].is_null() {
            return Err(Failure::not_offered("it has no groups"));
        }
        let fetch_bytes_max = with["fetch_bytes_max"]
            .as_i64()
            .map_or(FETCH_BYTES_MAX, |most| most as i32);
        let client = connect(with).await?;
        Ok(Self {
            client,
            reset: values::text(&with["reset"]),
            fetch_bytes_max,
            state: Mutex::default(),
        })
    }

    pub async fn call(&self, operation: &str, with: &Value) -> Outcome {
        let mut state = self.state.lock().await;
        let partitions: Vec<Partition> = with["partitions"]
            .as_array()
            .into_iter()
            .flatten()
            .map(values::partition)
            .collect();
        match operation {
            "assign" => {
                let at = if self.reset == "latest" {
                    OffsetAt::Latest
                } else {
                    OffsetAt::Earliest
                };
                self.seek(&mut state, partitions, at).await
            }
            "seek" => {
                let offset = with["offset"].as_i64().expect("an offset");
                state
                    .positions
                    .insert(values::partition(&with["partition"]), offset);
                Ok(Value::Null)
            }
            "seek_to_beginning" => self.seek(&mut state, partitions, OffsetAt::Earliest).await,
            "seek_to_end" => self.seek(&mut state, partitions, OffsetAt::Latest).await,
            "position" => Ok(json!(
                state.positions[&values::partition(&with["partition"])]
            )),
            "pause" => {
                state.paused.extend(partitions);
                Ok(Value::Null)
            }
            "resume" => {
                state.paused.retain(|each| !partitions.contains(each));
                Ok(Value::Null)
            }
            "poll" => {
                let wait = Duration::from_millis(with["wait_ms"].as_u64().expect("a time"));
                let most = with["records_max"].as_u64().expect("a number") as usize;
                self.poll(&mut state, Instant::now() + wait, most).await
            }
            "bounds" => {
                let mut told = Vec::new();
                for each in partitions {
                    let client = self.of(&mut state, &each).await?;
                    let first = client.get_offset(OffsetAt::Earliest).await?;
                    told.push(json!([
                        each,
                        [first, client.get_offset(OffsetAt::Latest).await?]
                    ]));
                }
                Ok(Value::Array(told))
            }
            "find_times" => {
                let mut told = Vec::new();
                for pair in values::list(&with["times"]) {
                    let each = values::partition(&pair[0]);
                    let time = values::time(pair[1].as_i64().expect("a time"));
                    let found = self
                        .of(&mut state, &each)
                        .await?
                        .get_offset(OffsetAt::Timestamp(time))
                        .await?;
                    told.push(json!([each, (found >= 0).then_some(found)]));
                }
                Ok(Value::Array(told))
            }
            "partitions_of" => {
                let topics = self.client.list_topics().await?;
                let name = values::text(&with["topic"]);
                Ok(json!(
                    topics
                        .into_iter()
                        .find(|each| each.name == name)
                        .map_or(BTreeSet::new(), |each| each.partitions)
                ))
            }
            _ => Err(Failure::unknown(operation)),
        }
    }

    async fn of(
        &self,
        state: &mut State,
        partition: &Partition,
    ) -> Result<Arc<PartitionClient>, Failure> {
        if !state.clients.contains_key(partition) {
            let (topic, number) = partition.clone();
            let opened = self
                .client
                .partition_client(topic, number, UnknownTopicHandling::Retry)
                .await?;
            state.clients.insert(partition.clone(), Arc::new(opened));
        }
        Ok(Arc::clone(&state.clients[partition]))
    }

    async fn seek(&self, state: &mut State, partitions: Vec<Partition>, at: OffsetAt) -> Outcome {
        for each in &partitions {
            self.of(state, each).await?;
        }
        let offsets = try_join_all(
            partitions
                .iter()
                .map(|each| state.clients[each].get_offset(at)),
        )
        .await?;
        state.positions.extend(partitions.into_iter().zip(offsets));
        Ok(Value::Null)
    }

    async fn poll(&self, state: &mut State, end: Instant, most: usize) -> Outcome {
        loop {
            let records = self.fetch(state, most).await?;
            if !records.is_empty() || Instant::now() >= end {
                return Ok(Value::Array(records));
            }
        }
    }

    /// Asks for records of all partitions at the same time.
    async fn fetch(&self, state: &mut State, most: usize) -> Result<Vec<Value>, Failure> {
        let mut asked = Vec::new();
        for (each, position) in state.positions.clone() {
            if !state.paused.contains(&each) {
                asked.push((self.of(state, &each).await?, each, position));
            }
        }
        if asked.is_empty() {
            tokio::time::sleep(Duration::from_millis(FETCH_WAIT_MS as u64)).await;
        }
        let fetches = asked.iter().map(|(client, _, position)| {
            client.fetch_records(*position, 1..self.fetch_bytes_max, FETCH_WAIT_MS)
        });
        let mut told = Vec::new();
        for (found, (_, each, _)) in join_all(fetches).await.into_iter().zip(&asked) {
            let (records, _) = found.map_err(|error| self.explained(error.into()))?;
            for record in records.iter().take(most - told.len()) {
                told.push(values::told(&each.0, each.1, record));
                state.positions.insert(each.clone(), record.offset + 1);
            }
        }
        Ok(told)
    }

    fn explained(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Refused {
                code: OFFSET_OUT_OF_RANGE,
                ..
            } if self.reset != "none" => {
                Failure::not_offered("it does not reset an offset that is out of range")
            }
            other => other,
        }
    }
}
