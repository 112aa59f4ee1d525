//! MongoDB, and the address that leads to it.

use likewise_tests::setting;
use mongodb::bson::{Document, doc};

use crate::alone;
use crate::diagnosis::{diagnose, role_is_refused};
use crate::mongod::Mongod;

const URI: &str = "LIKEWISE_MONGODB_URI";

#[tokio::test]
async fn a_server_that_is_no_replica_set_is_refused_however_it_is_addressed() {
    let _alone = alone().await;
    let mongod = Mongod::alone().await;
    let (found, fix) = ("replication.replSetName is none", "start mongod with --replSet rs0");
    for uri in [mongod.uri(), mongod.direct_uri()] {
        diagnose(&[(URI, &uri)]).await.refuses(found, fix);
        for role in ["read-api", "aggregator", "reconciler"] {
            role_is_refused(role, &[(URI, &uri)], found, fix).await;
        }
    }
}

#[tokio::test]
async fn an_address_that_asks_for_less_than_majority_is_refused() {
    let _alone = alone().await;
    let uri = setting("MONGODB_URI");
    for (asked, found) in
        [("w=1", "w is 1"), ("w=0", "w is 0"), ("journal=false", "journal is false")]
    {
        let uri = format!("{uri}&{asked}");
        let name = asked.split('=').next().unwrap_or_default();
        let fix = format!("take `{name}` out of LIKEWISE_MONGODB_URI");
        diagnose(&[(URI, &uri)]).await.refuses(found, &fix);
        role_is_refused("read-api", &[(URI, &uri)], found, &fix).await;
    }
    for (asked, found) in [
        ("readPreference=secondary", "readPreference is Secondary"),
        ("readConcernLevel=local", "readConcernLevel is Local"),
    ] {
        let uri = format!("{uri}&{asked}");
        diagnose(&[(URI, &uri)]).await.warns(found, "take `read");
    }
}

#[tokio::test]
async fn counts_without_a_generation_or_of_another_number_of_partitions_are_refused() {
    let _alone = alone().await;
    let mongod = Mongod::empty().await;
    let uri = mongod.uri();
    let told = [(URI, uri.as_str())];
    diagnose(&told).await.refuses("live generation is missing", "likewise migrate");

    let partitions: usize = setting("PARTITIONS").parse().expect("a number");
    let other = vec![0_i64; partitions * 2];
    let client = mongodb::Client::with_uri_str(&uri).await.expect("an URI");
    let generations = client.database("likewise").collection::<Document>("generations");
    let empty: Vec<i64> = Vec::new();
    let generation = doc! {
        "_id": 1_i64, "state": "counting", "topic": "likewise.changes", "starts": other, "opened": empty,
    };
    let live = doc! { "_id": "live", "generation": 1_i64 };
    generations.insert_many([generation, live]).await.expect("it is written");
    let found = format!("partitions of likewise.changes is {partitions}");
    diagnose(&told).await.refuses(&found, "likewise rebuild --from-here");

    let starts = vec![0_i64; partitions];
    let update = doc! { "$set": { "starts": starts } };
    generations.update_one(doc! { "_id": 1_i64 }, update).await.expect("it is written");
    let diagnosis = diagnose(&told).await;
    diagnosis.is_fit();
    diagnosis.says("ok       MongoDB");

    let parameter = |seconds: i32| {
        doc! { "setParameter": 1, "transactionLifetimeLimitSeconds": seconds }
    };
    let admin = mongod.admin().await;
    admin.run_command(parameter(60)).await.expect("it is set");
    let fix =
        "mongosh --eval 'db.adminCommand({ setParameter: 1, transactionLifetimeLimitSeconds: 5 })'";
    diagnose(&told).await.warns("transactionLifetimeLimitSeconds is 60", fix);
    admin.run_command(parameter(5)).await.expect("it is set");

    let config = admin.run_command(doc! { "replSetGetConfig": 1 }).await.expect("it answers");
    let mut config = config.get_document("config").expect("it has one").clone();
    config.insert("version", config.get_i32("version").expect("a number") + 1);
    config.insert("writeConcernMajorityJournalDefault", false);
    admin.run_command(doc! { "replSetReconfig": config }).await.expect("it is set");
    let fix = "mongosh --eval 'cfg = rs.conf(); cfg.writeConcernMajorityJournalDefault = true;";
    diagnose(&told).await.refuses("writeConcernMajorityJournalDefault is false", fix);
}
