//! MongoDB's `failCommand`: commands that fail, or wait, as a server does not do when asked.
//!
//! Only clients whose URI says `appName` are met, and the server has one such fail point: it belongs
//! to one holder at a time.

use std::time::Duration;

use mongodb::Client;
use mongodb::bson::{Bson, Document, doc};
use tokio::sync::{Mutex, MutexGuard};

use crate::setting;

static HOLDER: Mutex<()> = Mutex::const_new(());

/// The fail point, switched on.
pub struct FailPoint {
    admin: mongodb::Database,
    /// How often it was entered before.
    before: i64,
    _held: MutexGuard<'static, ()>,
}

impl FailPoint {
    /// Switches it on for one application; `mode` and `data` are those of `configureFailPoint`.
    ///
    /// # Panics
    /// If MongoDB does not take it: it needs `enableTestCommands=1`.
    pub async fn on(app: &str, mode: impl Into<Bson>, mut data: Document) -> Self {
        let held = HOLDER.lock().await;
        let client = Client::with_uri_str(setting("MONGODB_URI")).await.expect("a client");
        let admin = client.database("admin");
        data.insert("appName", app);
        let before = configure(&admin, doc! { "mode": mode.into(), "data": data }).await;
        Self { admin, before, _held: held }
    }

    /// Waits until it was entered so often since it was switched on.
    ///
    /// # Panics
    /// If that takes longer than `limit`.
    pub async fn entered(&self, times: i64, limit: Duration) {
        let until = self.before + times;
        let limit_ms = i64::try_from(limit.as_millis()).expect("a limit");
        let wait = doc! {
            "waitForFailPoint": "failCommand", "timesEntered": until, "maxTimeMS": limit_ms,
        };
        self.admin.run_command(wait).await.expect("the fail point is reached");
    }

    /// Switches it off, and tells how often it was entered.
    pub async fn off(self) -> u64 {
        let after = configure(&self.admin, doc! { "mode": "off" }).await;
        u64::try_from(after - self.before).expect("it counts up")
    }
}

/// Switches off whatever somebody left on.
pub async fn no_fail_point() {
    let client = Client::with_uri_str(setting("MONGODB_URI")).await.expect("a client");
    configure(&client.database("admin"), doc! { "mode": "off" }).await;
}

/// Answers with how often it was entered in the server's life.
async fn configure(admin: &mongodb::Database, how: Document) -> i64 {
    let mut command = doc! { "configureFailPoint": "failCommand" };
    command.extend(how);
    let reply = admin.run_command(command).await.expect("MongoDB takes the fail point");
    let count = reply.get("count").expect("it says how often it was entered");
    count.as_i64().or(count.as_i32().map(i64::from)).expect("a number")
}
