use rskafka::client::Client;
use rskafka::client::partition::{OffsetAt, UnknownTopicHandling};
use serde_json::{Value, json};

use crate::failures::Failure;
use crate::{Outcome, connect, values};

const TIMEOUT_MS: i32 = 30_000;

pub struct Admin {
    client: Client,
}

impl Admin {
    pub async fn open(with: &Value) -> Result<Self, Failure> {
        Ok(Self {
            client: connect(with).await?,
        })
    }

    pub async fn call(&self, operation: &str, with: &Value) -> Outcome {
        match operation {
            "create_topic" => self.create_topic(with).await,
            "delete_topic" => {
                self.client
                    .controller_client()?
                    .delete_topic(values::text(&with["name"]), TIMEOUT_MS)
                    .await?;
                Ok(Value::Null)
            }
            "list_topics" => {
                let topics = self.client.list_topics().await?;
                Ok(json!(
                    topics.into_iter().map(|each| each.name).collect::<Vec<_>>()
                ))
            }
            "delete_records" => self.delete_records(values::list(&with["before"])).await,
            _ => match LACKS.iter().find(|(name, _)| *name == operation) {
                Some((_, reason)) => Err(Failure::not_offered(reason)),
                None => Err(Failure::unknown(operation)),
            },
        }
    }

    async fn create_topic(&self, with: &Value) -> Outcome {
        if with["settings"]
            .as_object()
            .is_some_and(|settings| !settings.is_empty())
        {
            return Err(Failure::not_offered("it creates topics without settings"));
        }
        if with["validate_only"] == true {
            return Err(Failure::not_offered("it cannot validate topics"));
        }
        let partitions = with["partition_count"].as_i64().expect("a number") as i32;
        let replicas = with["replication_factor"].as_i64().expect("a number") as i16;
        let controller = self.client.controller_client()?;
        controller
            .create_topic(
                values::text(&with["name"]),
                partitions,
                replicas,
                TIMEOUT_MS,
            )
            .await?;
        Ok(Value::Null)
    }

    async fn delete_records(&self, before: &[Value]) -> Outcome {
        let mut told = Vec::new();
        for pair in before {
            let (topic, partition) = values::partition(&pair[0]);
            let client = self
                .client
                .partition_client(&topic, partition, UnknownTopicHandling::Retry)
                .await?;
            client
                .delete_records(pair[1].as_i64().expect("an offset"), TIMEOUT_MS)
                .await?;
            let first = client.get_offset(OffsetAt::Earliest).await?; // which it does not tell by itself
            told.push(json!([[topic, partition], first]));
        }
        Ok(Value::Array(told))
    }
}

const LACKS: [(&str, &str); 26] = [
    ("describe_topic", "it cannot describe topics"),
    (
        "describe_topic_by_pages",
        "it does not know DescribeTopicPartitions",
    ),
    ("create_partitions", "it cannot add partitions"),
    ("describe_cluster", "it cannot describe the cluster"),
    ("describe_settings", "it cannot describe settings"),
    ("replace_settings", "it does not know AlterConfigs"),
    (
        "change_settings",
        "it does not know IncrementalAlterConfigs",
    ),
    (
        "list_config_resources",
        "it does not know ListConfigResources",
    ),
    ("list_groups", "it has no groups"),
    ("list_group_kinds", "it has no groups"),
    ("describe_group", "it has no groups"),
    ("describe_share_group", "it has no groups"),
    ("delete_group", "it has no groups"),
    ("delete_share_group", "it has no groups"),
    ("remove_member", "it has no groups"),
    ("group_offsets", "it has no groups"),
    ("alter_group_offsets", "it has no groups"),
    ("delete_group_offsets", "it has no groups"),
    (
        "find_offsets",
        "it cannot look up the offset of the latest timestamp",
    ),
    ("log_sizes", "it cannot describe log directories"),
    ("describe_producers", "it cannot describe producers"),
    ("list_transactions", "it has no transactions"),
    ("describe_transaction", "it has no transactions"),
    ("fence_producer", "it has no transactions"),
    ("abort_transaction", "it has no transactions"),
    ("api_versions", "it does not tell the broker's API versions"),
];
