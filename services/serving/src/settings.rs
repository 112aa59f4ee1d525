//! What a role's listener is told: its limits, and whom it trusts.

use std::time::Duration;

use axum::http::HeaderValue;
use ipnet::IpNet;

/// The limits of a listener. Each is of one process.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// From the first byte of a request, or from the connection's begin, to the end of its headers;
    /// and the same again for its content.
    pub header_deadline: Duration,
    /// How long a connection may stay without a request.
    pub idle_deadline: Duration,
    /// How long a client may take nothing of an answer that waits for it, streams included. On HTTP/2 each
    /// 16 KiB of an answer have so long; what is left of the last ones goes with the idle connection.
    pub send_deadline: Duration,
    /// How long a call may take until its answer begins.
    pub request_deadline: Duration,
    /// How many connections are served. A few more are accepted, and answered 503, health aside.
    pub max_connections: usize,
    /// How many calls are worked on at once. More are answered 503 at once; health is not counted.
    pub max_concurrent_requests: usize,
    /// How long requests in flight may take to end once the role was asked to stop.
    pub shutdown_grace: Duration,
    /// Origins whose pages may call; none: no header of CORS is ever sent.
    pub cors_origins: Vec<HeaderValue>,
    /// Proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpNet>,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            // Headers fit into a packet or a few.
            header_deadline: Duration::from_secs(5),
            // Longer than the 60 s after which most clients and balancers close an idle connection
            // themselves: then it is never this side that closes one while a request is on its way.
            idle_deadline: Duration::from_secs(75),
            // A phone that changes its network comes back within that, or not at all.
            send_deadline: Duration::from_secs(10),
            // A person waits for the answer.
            request_deadline: Duration::from_secs(5),
            // When every client means harm: a head of up to 64 KiB each, 512 MiB; where they speak HTTP/2,
            // as much again for each direction of their windows and for frames, 2 GiB.
            max_connections: 8_192,
            // Far more than the connections to the stores: what waits for one is answered in time.
            max_concurrent_requests: 2_048,
            shutdown_grace: Duration::from_secs(10),
            cors_origins: Vec::new(),
            trusted_proxies: Vec::new(),
        }
    }
}
