//! Both APIs, as an app server calls them.

use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::Value;

use crate::{Listener, setting};

/// An answer, read whole.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its media type.
    pub content_type: String,
    /// Its headers.
    pub headers: reqwest::header::HeaderMap,
    /// Its JSON, or null.
    pub json: Value,
    /// Its text.
    pub text: String,
}

/// An app server.
#[derive(Clone, Debug)]
pub struct Api {
    client: Client,
    write: String,
    read: String,
    token: String,
}

impl Api {
    /// With the stack's service token.
    ///
    /// # Panics
    /// Outside `scripts/test`.
    pub fn new() -> Self {
        let client = Client::builder().timeout(Duration::from_secs(20)).build();
        Self {
            client: client.expect("an HTTP client"),
            write: setting("WRITE_API_URL"),
            read: setting("READ_API_URL"),
            token: setting("SERVICE_TOKEN"),
        }
    }

    /// `PUT …/like`
    pub async fn like(&self, user: &str, post: &str) -> Answer {
        self.edge(Method::PUT, user, post).await
    }

    /// `DELETE …/like`
    pub async fn unlike(&self, user: &str, post: &str) -> Answer {
        self.edge(Method::DELETE, user, post).await
    }

    /// `GET …/like`
    pub async fn liked(&self, user: &str, post: &str) -> bool {
        let answer = self.edge(Method::GET, user, post).await;
        answer.json["liked"].as_bool().unwrap_or_else(|| panic!("not an answer: {answer:?}"))
    }

    /// `GET …/count`
    pub async fn count(&self, post: &str) -> Answer {
        answer(self.count_request(post)).await
    }

    /// `GET …/count` of a time or later, also where an older one is kept.
    pub async fn count_since(&self, post: &str, mark: &str) -> Answer {
        self.read(&format!("/v1/posts/{post}/count?min_as_of={mark}"), None).await
    }

    /// `GET` of the read API, for nobody or for a user.
    pub async fn read(&self, path: &str, user: Option<&str>) -> Answer {
        answer(self.read_request(path, user)).await
    }

    /// The same, not sent yet.
    pub fn read_request(&self, path: &str, user: Option<&str>) -> RequestBuilder {
        let request = self.client.get(format!("{}{path}", self.read)).bearer_auth(&self.token);
        match user {
            Some(user) => request.header("X-User-Id", user),
            None => request,
        }
    }

    /// `GET …/count/stream`
    pub async fn listen(&self, post: &str) -> Listener {
        // The client's own time limit is for whole answers.
        let request = self.read_request(&format!("/v1/posts/{post}/count/stream"), None);
        let request = request.timeout(Duration::from_secs(600));
        Listener::new(request.send().await.expect("the API answers"))
    }

    /// `PUT` or `DELETE …/like`; an error when no whole answer came.
    pub async fn try_write(
        &self,
        user: &str,
        post: &str,
        liked: bool,
    ) -> Result<Answer, reqwest::Error> {
        let method = if liked { Method::PUT } else { Method::DELETE };
        try_answer(self.edge_request(method, user, post)).await
    }

    /// `GET …/count`; an error when no whole answer came.
    pub async fn try_count(&self, post: &str) -> Result<Answer, reqwest::Error> {
        try_answer(self.count_request(post)).await
    }

    /// Any call; `target` begins with `W` or `R` for the API, and a path.
    pub async fn call(&self, method: Method, target: &str, headers: &[(&str, &str)]) -> Answer {
        let (api, path) = target.split_at(1);
        let base = if api == "W" { &self.write } else { &self.read };
        let mut request = self.client.request(method, format!("{base}{path}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        answer(request).await
    }

    /// Any call as an app server: [`Api::call`] with the service token.
    pub async fn as_service(
        &self,
        method: Method,
        target: &str,
        headers: &[(&str, &str)],
    ) -> Answer {
        let bearer = format!("Bearer {}", self.token);
        let mut all = vec![("Authorization", bearer.as_str())];
        all.extend_from_slice(headers);
        self.call(method, target, &all).await
    }

    /// Any call as an operator.
    pub async fn as_operator(&self, method: Method, target: &str) -> Answer {
        let bearer = format!("Bearer {}", setting("OPERATOR_TOKEN"));
        self.call(method, target, &[("Authorization", &bearer)]).await
    }

    async fn edge(&self, method: Method, user: &str, post: &str) -> Answer {
        answer(self.edge_request(method, user, post)).await
    }

    fn edge_request(&self, method: Method, user: &str, post: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}/v1/posts/{post}/like", self.write));
        request.bearer_auth(&self.token).header("X-User-Id", user)
    }

    fn count_request(&self, post: &str) -> RequestBuilder {
        let request = self.client.get(format!("{}/v1/posts/{post}/count", self.read));
        request.bearer_auth(&self.token)
    }
}

impl Default for Api {
    fn default() -> Self {
        Self::new()
    }
}

async fn answer(request: RequestBuilder) -> Answer {
    try_answer(request).await.expect("the API answers")
}

async fn try_answer(request: RequestBuilder) -> Result<Answer, reqwest::Error> {
    let response = request.send().await?;
    let status = response.status();
    let headers = response.headers().clone();
    let content_type = headers.get("content-type").and_then(|value| value.to_str().ok());
    let content_type = content_type.unwrap_or_default().to_owned();
    let body = response.bytes().await?;
    let json = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let text = String::from_utf8_lossy(&body).into_owned();
    Ok(Answer { status, content_type, headers, json, text })
}
