//! Between JSON and the library's types.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use chrono::{DateTime, Utc};
use rskafka::record::{Record, RecordAndOffset};
use serde_json::{Value, json};

use crate::failures::Failure;

pub fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_string()
}

pub fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

/// Written as a list of topic and number.
pub fn partition(value: &Value) -> (String, i32) {
    (text(&value[0]), value[1].as_i64().expect("a number") as i32)
}

pub fn time(milliseconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(milliseconds).expect("a time that can be")
}

fn now() -> DateTime<Utc> {
    let passed = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("a clock that goes right");
    time(passed.as_millis() as i64)
}

fn bytes(value: &Value) -> Option<Vec<u8>> {
    value
        .as_str()
        .map(|encoded| BASE64_STANDARD.decode(encoded).expect("base64"))
}

fn encoded(content: Option<&Vec<u8>>) -> Value {
    content.map_or(Value::Null, |content| {
        json!(BASE64_STANDARD.encode(content))
    })
}

pub fn record(fields: &Value) -> Result<Record, Failure> {
    let mut headers = BTreeMap::new();
    for pair in list(&fields["headers"]) {
        let value = bytes(&pair[1]).ok_or(Failure::not_offered(
            "its producer takes no header without a value",
        ))?;
        if headers.insert(text(&pair[0]), value).is_some() {
            return Err(Failure::not_offered(
                "its records have one header of each name",
            ));
        }
    }
    let timestamp = fields["timestamp_ms"].as_i64().map_or_else(now, time);
    Ok(Record {
        key: bytes(&fields["key"]),
        value: bytes(&fields["value"]),
        headers,
        timestamp,
    })
}

pub fn told(topic: &str, partition: i32, taken: &RecordAndOffset) -> Value {
    let record = &taken.record;
    let headers: Vec<Value> = record
        .headers
        .iter()
        .map(|(name, value)| json!([name, encoded(Some(value))]))
        .collect();
    json!({
        "topic": topic,
        "partition": partition,
        "offset": taken.offset,
        "key": encoded(record.key.as_ref()),
        "value": encoded(record.value.as_ref()),
        "headers": headers,
        "timestamp_ms": record.timestamp.timestamp_millis(),
    })
}
