use std::collections::BTreeMap;

use rskafka::client::Client;
use rskafka::client::partition::{Compression, UnknownTopicHandling};
use rskafka::record::Record;
use serde_json::{Value, json};

use crate::failures::Failure;
use crate::{Outcome, connect, values};

/// Produces to partitions that its user chooses, and waits for all replicas.
pub struct Producer {
    client: Client,
    compression: Compression,
    batch_bytes_max: Option<u64>,
}

impl Producer {
    pub async fn open(with: &Value) -> Result<Self, Failure> {
        if with["acks"] != "all" {
            return Err(Failure::not_offered(
                "its producer always waits for all replicas",
            ));
        }
        if with["idempotent"] == true {
            return Err(Failure::not_offered("its producer is never idempotent"));
        }
        let compression = match with["codec"].as_str().expect("a codec") {
            "none" => Compression::NoCompression,
            "gzip" => Compression::Gzip,
            "snappy" => Compression::Snappy,
            "lz4" => Compression::Lz4,
            "zstd" => Compression::Zstd,
            other => return Err(Failure::Other(format!("no such codec: {other}"))),
        };
        Ok(Self {
            client: connect(with).await?,
            compression,
            batch_bytes_max: with["batch_bytes_max"].as_u64(),
        })
    }

    pub async fn call(&self, operation: &str, with: &Value) -> Outcome {
        match operation {
            "send" => {
                self.send(
                    &values::text(&with["topic"]),
                    values::list(&with["records"]),
                )
                .await
            }
            _ => Err(Failure::unknown(operation)),
        }
    }

    async fn send(&self, topic: &str, records: &[Value]) -> Outcome {
        let mut places = vec![Value::Null; records.len()];
        let mut by_partition: BTreeMap<i32, Vec<(usize, Record)>> = BTreeMap::new();
        let sole = self.sole_partition(topic).await?;
        for (number, fields) in records.iter().enumerate() {
            let partition = fields["partition"]
                .as_i64()
                .map(|chosen| chosen as i32)
                .or(sole);
            let partition = partition.ok_or(Failure::not_offered(
                "it leaves the choice of a partition to its user",
            ))?;
            by_partition
                .entry(partition)
                .or_default()
                .push((number, values::record(fields)?));
        }
        for (partition, numbered) in by_partition {
            let sink = self
                .client
                .partition_client(topic, partition, UnknownTopicHandling::Retry)
                .await?;
            for batch in self.batches(numbered) {
                let (numbers, records): (Vec<usize>, Vec<Record>) = batch.into_iter().unzip();
                let offsets = sink.produce(records, self.compression).await?;
                for (number, offset) in numbers.into_iter().zip(offsets) {
                    places[number] = json!([partition, offset]);
                }
            }
        }
        Ok(Value::Array(places))
    }

    /// The partition of a topic that has no other.
    async fn sole_partition(&self, topic: &str) -> Result<Option<i32>, Failure> {
        let topics = self.client.list_topics().await?;
        let found = topics.iter().find(|each| each.name == topic);
        let found = found.ok_or(Failure::not_offered(
            "it does not create topics by producing",
        ))?;
        Ok(found
            .partitions
            .first()
            .copied()
            .filter(|_| found.partitions.len() == 1))
    }

    /// What to send one after the other: what it is given at a time is one batch.
    fn batches(&self, records: Vec<(usize, Record)>) -> Vec<Vec<(usize, Record)>> {
        let mut batches: Vec<Vec<(usize, Record)>> = vec![Vec::new()];
        let mut size = 0;
        for (number, record) in records {
            let added = record.approximate_size() as u64;
            if self
                .batch_bytes_max
                .is_some_and(|most| size > 0 && size + added > most)
            {
                batches.push(Vec::new());
                size = 0;
            }
            size += added;
            batches
                .last_mut()
                .expect("there is always one")
                .push((number, record));
        }
        batches
    }
}
