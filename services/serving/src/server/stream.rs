//! A TCP stream that tells what it is doing.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::progress::Progress;

/// How HTTP/2 begins without TLS, as far as no method of HTTP/1.1 does.
const HTTP2: &[u8] = b"PRI * HTTP/2";

pub(super) struct Stream {
    tcp: TcpStream,
    progress: Arc<Progress>,
    /// How many of the first bytes were those of HTTP/2; none once they were not.
    preface: Option<usize>,
}

impl Stream {
    pub(super) fn new(tcp: TcpStream, progress: Arc<Progress>) -> Self {
        Self { tcp, progress, preface: Some(0) }
    }

    fn received(&mut self, bytes: &[u8]) {
        if let Some(seen) = self.preface {
            let compared = bytes.len().min(HTTP2.len() - seen);
            self.preface =
                (bytes[..compared] == HTTP2[seen..seen + compared]).then_some(seen + compared);
            if self.preface == Some(HTTP2.len()) {
                self.preface = None;
                self.progress.speaks_http2();
            }
        }
        self.progress.received();
    }

    fn sent(&self, outcome: &Poll<io::Result<usize>>) {
        match outcome {
            Poll::Pending => self.progress.send_waits(),
            Poll::Ready(_) => self.progress.sent(),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let outcome = Pin::new(&mut self.tcp).poll_read(cx, into);
        let bytes = &into.filled()[before..];
        if !bytes.is_empty() {
            self.received(bytes);
        }
        outcome
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.tcp).poll_write(cx, bytes);
        self.sent(&outcome);
        outcome
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.tcp).poll_write_vectored(cx, bytes);
        self.sent(&outcome);
        outcome
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}
