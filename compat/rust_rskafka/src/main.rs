//! Carries out calls with rskafka: lines of JSON in, lines of JSON out, as
//! `compat/scenarios/remote/process.py` describes them.

mod admin;
mod consumer;
mod failures;
mod producer;
mod values;

use std::io::{BufRead, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rskafka::BackoffConfig;
use rskafka::client::{Client, ClientBuilder};
use serde_json::{Value, json};

use crate::failures::Failure;

const CLIENT: &str = "rskafka";
const LOCKED: &str = include_str!("../Cargo.lock");
const PATIENCE: Duration = Duration::from_secs(60);
const MESSAGE_BYTES_MAX: usize = 100 * 1024 * 1024;

/// What a call gives.
pub type Outcome = Result<Value, Failure>;

enum Subject {
    Producer(producer::Producer),
    Consumer(consumer::Consumer),
    Admin(admin::Admin),
}

#[derive(Default)]
struct Driver {
    /// Those that were opened; their numbers begin with 1, since 0 is the library.
    subjects: Mutex<Vec<Arc<Subject>>>,
}

fn main() {
    write(&json!({"client": CLIENT, "version": version()}));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be had");
    let driver = Arc::new(Driver::default());
    for line in std::io::stdin().lock().lines() {
        let asked: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        let driver = Arc::clone(&driver);
        runtime.spawn(async move {
            let outcome = match tokio::time::timeout(PATIENCE, driver.call(&asked)).await {
                Ok(outcome) => outcome,
                Err(_) => Err(Failure::Other("it took too long".to_string())),
            };
            let mut told = match outcome {
                Ok(gives) => json!({"gives": gives}),
                Err(failure) => failure.told(),
            };
            told["id"] = asked["id"].clone();
            write(&told);
        });
    }
    runtime.shutdown_background();
}

/// Of the library, as it is locked.
fn version() -> &'static str {
    let (_, rest) = LOCKED
        .split_once("name = \"rskafka\"\nversion = \"")
        .expect("it is locked");
    rest.split_once('"').expect("a version ends").0
}

fn write(line: &Value) {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}").expect("somebody reads");
    output.flush().expect("somebody reads");
}

pub async fn connect(with: &Value) -> Result<Client, Failure> {
    let patient = BackoffConfig {
        deadline: Some(PATIENCE),
        max_backoff: Duration::from_secs(1),
        ..Default::default()
    };
    let builder = ClientBuilder::new(vec![values::text(&with["address"])])
        .max_message_size(MESSAGE_BYTES_MAX)
        .backoff_config(patient);
    Ok(builder.build().await?)
}

impl Driver {
    async fn call(&self, asked: &Value) -> Outcome {
        let operation = asked["do"].as_str().expect("an operation");
        let with = &asked["with"];
        let number = asked["on"].as_u64().expect("a number") as usize;
        if number == 0 {
            let opened = open(operation, with).await?;
            let mut subjects = self.subjects.lock().expect("no call panics here");
            subjects.push(Arc::new(opened));
            return Ok(json!(subjects.len()));
        }
        let subject = Arc::clone(&self.subjects.lock().expect("no call panics here")[number - 1]);
        if operation == "close" {
            return Ok(Value::Null);
        }
        match &*subject {
            Subject::Producer(producer) => producer.call(operation, with).await,
            Subject::Consumer(consumer) => consumer.call(operation, with).await,
            Subject::Admin(admin) => admin.call(operation, with).await,
        }
    }
}

async fn open(operation: &str, with: &Value) -> Result<Subject, Failure> {
    match operation {
        "producer" => Ok(Subject::Producer(producer::Producer::open(with).await?)),
        "consumer" => Ok(Subject::Consumer(consumer::Consumer::open(with).await?)),
        "admin" => Ok(Subject::Admin(admin::Admin::open(with).await?)),
        "transactional_producer" => Err(Failure::not_offered("it has no transactions")),
        "share_consumer" => Err(Failure::not_offered("it has no share consumer")),
        _ => Err(Failure::unknown(operation)),
    }
}
