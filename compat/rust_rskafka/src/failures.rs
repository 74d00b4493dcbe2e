//! What went wrong, as an answer says it.

use rskafka::client::error::{Error, ProtocolError};
use serde_json::{Value, json};

pub enum Failure {
    /// The library has no way to do it.
    NotOffered(String),
    /// The broker answered with one of Kafka's errors.
    Refused {
        code: i16,
        text: String,
    },
    Other(String),
}

impl Failure {
    pub fn not_offered(reason: &str) -> Self {
        Self::NotOffered(reason.to_string())
    }

    pub fn unknown(operation: &str) -> Self {
        Self::Other(format!("no such operation: {operation}"))
    }

    pub fn told(&self) -> Value {
        match self {
            Self::NotOffered(text) => json!({"error": "not offered", "text": text}),
            Self::Refused { code, text } => json!({"error": "refused", "code": code, "text": text}),
            Self::Other(text) => json!({"error": "failed", "text": text}),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        match error {
            Error::ServerError { protocol_error, .. } => Self::Refused {
                code: code_of(protocol_error),
                text,
            },
            _ => Self::Other(text),
        }
    }
}

/// Kafka's number of an error, which the library keeps to itself.
fn code_of(error: ProtocolError) -> i16 {
    (-1..i16::MAX)
        .find(|code| ProtocolError::new(*code) == Some(error))
        .expect("it came from a number")
}
