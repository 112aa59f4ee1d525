//! A stream of server-sent events, as a listener reads it.

use reqwest::Response;
use serde_json::Value;

/// A listener.
pub struct Listener {
    response: Response,
    text: String,
}

/// What came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// An event with its name and its data.
    Event(String, Value),
    /// A comment: the stream is alive.
    Comment,
    /// The stream ended.
    End,
}

impl Listener {
    /// Listens to an answer.
    ///
    /// # Panics
    /// If it is no stream of events.
    pub fn new(response: Response) -> Self {
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, text: String::new() }
    }

    /// Waits for what comes next.
    pub async fn next(&mut self) -> Heard {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| {
                    let line = block.lines().find_map(|line| line.strip_prefix(name));
                    line.map(|value| value.trim_start().to_owned())
                };
                let heard = match (field("event:"), field("data:")) {
                    (Some(event), Some(data)) => {
                        Heard::Event(event, serde_json::from_str(&data).expect("JSON"))
                    }
                    _ => Heard::Comment,
                };
                self.text = rest.to_owned();
                return heard;
            }
            match self.response.chunk().await {
                Ok(Some(chunk)) => self.text.push_str(&String::from_utf8_lossy(&chunk)),
                Ok(None) | Err(_) => return Heard::End,
            }
        }
    }

    /// Waits for an event `count` that is as it should be.
    ///
    /// # Panics
    /// If the stream ends before.
    pub async fn hears(&mut self, mut wanted: impl FnMut(&Value) -> bool) -> Value {
        loop {
            match self.next().await {
                Heard::Event(name, data) if name == "count" && wanted(&data) => return data,
                Heard::Event(..) | Heard::Comment => {}
                Heard::End => panic!("the stream ended"),
            }
        }
    }
}
