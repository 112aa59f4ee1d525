//! How many writes a minute one user may have.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{FromRequestParts as _, MatchedPath, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use governor::clock::{Clock as _, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};
use likewise_core::UserId;
use tokio_util::sync::CancellationToken;

use crate::{HasCallers, Kind, Problem, User};

/// The fields of draft-ietf-httpapi-ratelimit-headers, in its form of two fields. `t` says when there is
/// more than `r`; beside a `Retry-After` both are the same time.
pub(crate) const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
pub(crate) const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The calls that are limited: likes and unlikes.
pub(crate) const LIMITED_ROUTE: &str = "/v1/posts/{post_id}/like";
const WINDOW_S: u32 = 60;
/// How often users are forgotten who have all of their writes again.
const FORGET_EVERY: Duration = Duration::from_secs(30);

type Buckets =
    RateLimiter<UserId, DefaultKeyedStateStore<UserId>, DefaultClock, StateInformationMiddleware>;

/// The likes and unlikes of one user, whoever sends them: a bucket of a minute's writes that fills again
/// at an even pace. Each process has buckets of its own: behind a balancer, a user has as many as there
/// are processes that take their calls.
#[derive(Clone, Debug)]
pub struct WriteLimit {
    buckets: Option<Arc<Buckets>>,
    policy: HeaderValue,
    writes: u32,
}

impl WriteLimit {
    /// So many writes a minute; 0 is no limit.
    pub fn new(writes_per_minute: u32) -> Self {
        let buckets = NonZeroU32::new(writes_per_minute).map(|writes| {
            let buckets = RateLimiter::keyed(Quota::per_minute(writes));
            Arc::new(buckets.with_middleware::<StateInformationMiddleware>())
        });
        let policy = format!("\"writes\";q={writes_per_minute};w={WINDOW_S}");
        let policy =
            HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("\"writes\""));
        Self { buckets, policy, writes: writes_per_minute }
    }

    /// Limits the writes among a router's calls. A write that is refused does not reach its handler.
    pub fn limit<S>(&self, router: Router, state: S) -> Router
    where
        S: HasCallers + Clone + Send + Sync + 'static,
    {
        let Some(buckets) = self.buckets.clone() else { return router };
        let this = self.clone();
        router.layer(from_fn(move |request: Request, next: Next| {
            let (this, buckets, state) = (this.clone(), buckets.clone(), state.clone());
            async move { this.write(&buckets, &state, request, next).await }
        }))
    }

    /// Forgets users who have not written lately, until `shutdown`.
    pub async fn keep(self, shutdown: CancellationToken) -> anyhow::Result<()> {
        while !shutdown.is_cancelled() {
            if let Some(buckets) = &self.buckets {
                buckets.retain_recent();
                buckets.shrink_to_fit();
            }
            shutdown.run_until_cancelled(tokio::time::sleep(FORGET_EVERY)).await;
        }
        Ok(())
    }

    async fn write<S: HasCallers + Sync>(
        &self,
        buckets: &Buckets,
        state: &S,
        request: Request,
        next: Next,
    ) -> Response {
        let route = request.extensions().get::<MatchedPath>();
        let is_write = request.method() == Method::PUT || request.method() == Method::DELETE;
        if !is_write || route.is_none_or(|route| route.as_str() != LIMITED_ROUTE) {
            return next.run(request).await;
        }
        let (mut parts, body) = request.into_parts();
        let User(user) = match User::from_request_parts(&mut parts, state).await {
            Ok(user) => user,
            Err(problem) => return problem.into_response(),
        };
        match buckets.check_key(&user) {
            Ok(snapshot) => {
                let left = snapshot.remaining_burst_capacity();
                let mut response = next.run(Request::from_parts(parts, body)).await;
                self.tell(response.headers_mut(), left, self.one_more_after());
                response
            }
            Err(refused) => {
                metrics::counter!("likewise_refused_calls_total", "reason" => "too-many-writes")
                    .increment(1);
                let wait = seconds(refused.wait_time_from(buckets.clock().now()));
                let mut response = Problem::new(
                    Kind::TooManyWrites,
                    format!("a user may have {} likes and unlikes a minute; nothing was changed, and the call may be repeated after Retry-After", self.writes),
                )
                .retry_after(wait)
                .into_response();
                self.tell(response.headers_mut(), 0, wait);
                response
            }
        }
    }

    /// Within how many seconds there is a write more than now.
    fn one_more_after(&self) -> u32 {
        WINDOW_S.div_ceil(self.writes.max(1))
    }

    fn tell(&self, headers: &mut HeaderMap, left: u32, after_s: u32) {
        headers.insert(RATE_LIMIT_POLICY, self.policy.clone());
        if let Ok(state) = HeaderValue::try_from(format!("\"writes\";r={left};t={after_s}")) {
            headers.insert(RATE_LIMIT, state);
        }
    }
}

/// Whole seconds, after which it is surely over.
fn seconds(wait: Duration) -> u32 {
    u32::try_from(wait.as_secs()).unwrap_or(u32::MAX).saturating_add(1)
}
