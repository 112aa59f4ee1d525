//! HTTP by hand, for what a client library would not send.

use std::time::Duration;

use likewise_tests::setting;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

const LIMIT: Duration = Duration::from_secs(20);

pub(crate) struct Raw {
    stream: TcpStream,
    read: Vec<u8>,
}

/// The head of an answer, and its content.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) head: String,
    pub(crate) content: String,
}

impl Answer {
    pub(crate) fn status(&self) -> &str {
        self.head.split(' ').nth(1).expect("a status")
    }

    #[track_caller]
    pub(crate) fn is_problem(&self, status: &str, slug: &str) {
        assert_eq!(self.status(), status, "{self:?}");
        assert!(self.head.contains("content-type: application/problem+json"), "{self:?}");
        assert!(self.content.contains(&format!("urn:likewise:problem:{slug}")), "{self:?}");
    }
}

impl Raw {
    pub(crate) async fn connect(address: &str) -> Self {
        Self::reach(address).await.expect("it accepts")
    }

    /// None where nobody listens any more.
    pub(crate) async fn reach(address: &str) -> Option<Self> {
        let stream = TcpStream::connect(address).await.ok()?;
        Some(Self { stream, read: Vec::new() })
    }

    /// Sends a request, and reads its answer; none where the connection ends before.
    pub(crate) async fn ask(&mut self, request: &str) -> Option<Answer> {
        self.stream.write_all(request.as_bytes()).await.ok()?;
        self.next().await.ok()
    }

    pub(crate) async fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.expect("it is sent");
    }

    /// Sends until the other side takes no more.
    pub(crate) async fn send_all_it_takes(&mut self, text: &str) {
        while let Ok(Ok(_)) =
            timeout(Duration::from_millis(300), self.stream.write(text.as_bytes())).await
        {}
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("it is sent");
    }

    /// The first bytes of what comes.
    pub(crate) async fn bytes(&mut self, count: usize) -> Vec<u8> {
        while self.read.len() < count {
            assert!(self.more().await, "it ended after {:?}", self.read);
        }
        self.read[..count].to_vec()
    }

    /// The next answer, whose content has a length.
    pub(crate) async fn answer(&mut self) -> Answer {
        self.next().await.expect("it answers")
    }

    async fn next(&mut self) -> Result<Answer, String> {
        let ended = |read: &[u8]| format!("it ended after {:?}", String::from_utf8_lossy(read));
        let end = loop {
            if let Some(end) = self.read.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            if !self.more().await {
                return Err(ended(&self.read));
            }
        };
        let head = String::from_utf8_lossy(&self.read[..end]).into_owned();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.map_or(0, |length| length.parse().expect("a number"));
        while self.read.len() < end + length {
            if !self.more().await {
                return Err(ended(&self.read));
            }
        }
        let content = String::from_utf8_lossy(&self.read[end..end + length]).into_owned();
        self.read.drain(..end + length);
        Ok(Answer { head, content })
    }

    /// Waits until the other side closes, and nothing more came.
    pub(crate) async fn is_closed(&mut self) {
        assert!(!self.more().await, "{:?}", String::from_utf8_lossy(&self.read));
    }

    /// Reads whatever comes, until the other side closes.
    pub(crate) async fn ends(&mut self) {
        while self.more().await {}
    }

    async fn more(&mut self) -> bool {
        let read = timeout(LIMIT, self.stream.read_buf(&mut self.read)).await;
        // A reset is an end too.
        read.expect("it ends or sends").unwrap_or(0) > 0
    }
}

/// A request with the service token and a user.
pub(crate) fn request(method: &str, target: &str, headers: &str) -> String {
    let token = setting("SERVICE_TOKEN");
    format!(
        "{method} {target} HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer {token}\r\nX-User-Id: raw\r\n{headers}\r\n"
    )
}

/// `host:port` of a role of the stack.
pub(crate) fn address(role: &str) -> String {
    setting(&format!("{role}_URL")).trim_start_matches("http://").to_owned()
}

/// One frame of HTTP/2 (RFC 9113, 4.1).
pub(crate) fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).expect("it is short");
    [&[0, 0, length, kind, flags, 0, 0, 0, stream], payload].concat()
}

/// The head of a request, as literals that are not indexed (RFC 7541, 6.2.2).
pub(crate) fn head(method: &str, path: &str, headers: &[(&str, &str)]) -> Vec<u8> {
    let text = |text: &str| {
        let length = u8::try_from(text.len()).ok().filter(|length| *length < 127);
        [&[length.expect("it is short")], text.as_bytes()].concat()
    };
    // By the numbers of the static table: method, scheme http, path, authority.
    let mut head =
        [&[0x02][..], &text(method), &[0x86, 0x04], &text(path), &[0x01], &text("test")].concat();
    for (name, value) in headers {
        head.extend([&[0x00][..], &text(name), &text(value)].concat());
    }
    head
}
