//! What the reconciler asks of the servers' settings.

use anyhow::Context as _;
use likewise_connect::{Connect, Definition};
use likewise_core::Finding;
use likewise_serving::Condition;

use crate::Servers;

/// A connector that is not registered is not refused: it may be on its way.
const NOT_REGISTERED: &str = "the connector is not registered: run `likewise connector apply`";

pub(crate) fn of(servers: &Servers) -> [Condition; 3] {
    [
        Condition::new(
            "MySQL",
            servers.mysql.clone(),
            |mysql| async move { mysql.server().await },
            |mysql| async move { mysql.check().await },
        ),
        Condition::new(
            "MongoDB",
            servers.store.clone(),
            |store| async move { store.primary().await },
            |store| async move { store.check().await },
        ),
        Condition::new("Kafka Connect", servers.connect.clone(), registered, check),
    ]
}

async fn registered(connect: Connect) -> anyhow::Result<String> {
    let status = connect.status(&Definition::of_project().name).await?;
    status.map(|status| status.name).context(NOT_REGISTERED)
}

async fn check(connect: Connect) -> anyhow::Result<Vec<Finding>> {
    connect.check(&Definition::of_project()).await?.context(NOT_REGISTERED)
}
