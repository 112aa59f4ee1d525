//! MySQL, broken one setting after the other.

use std::time::Duration;

use likewise_core::{PostId, UserId};
use likewise_mysql::{Mysql, PoolSettings};

use crate::alone;
use crate::diagnosis::diagnose;
use crate::mysqld::Mysqld;

/// What breaks it, what is found, and the statements that put it right.
type Case = (&'static str, &'static str, &'static str);

/// From here on the GTID mode is off; the case after it finds that, too.
const WITHOUT_GTID: &str = "SET GLOBAL gtid_mode = ON_PERMISSIVE; \
    SET GLOBAL gtid_mode = OFF_PERMISSIVE; SET GLOBAL gtid_mode = OFF; \
    SET GLOBAL enforce_gtid_consistency = OFF;";

const VARIABLES: [Case; 10] = [
    (WITHOUT_GTID, "enforce_gtid_consistency is OFF", "SET PERSIST enforce_gtid_consistency = ON;"),
    (
        "",
        "gtid_mode is OFF",
        "SET PERSIST enforce_gtid_consistency = ON; SET PERSIST gtid_mode = OFF_PERMISSIVE; \
         SET PERSIST gtid_mode = ON_PERMISSIVE; SET PERSIST gtid_mode = ON;",
    ),
    (
        "SET GLOBAL binlog_format = STATEMENT;",
        "binlog_format is STATEMENT",
        "SET PERSIST binlog_format = ROW;",
    ),
    (
        "SET GLOBAL binlog_row_image = MINIMAL;",
        "binlog_row_image is MINIMAL",
        "SET PERSIST binlog_row_image = FULL;",
    ),
    (
        "SET GLOBAL binlog_transaction_compression = ON;",
        "binlog_transaction_compression is ON",
        "SET PERSIST binlog_transaction_compression = OFF;",
    ),
    (
        "SET GLOBAL binlog_order_commits = OFF;",
        "binlog_order_commits is OFF",
        "SET PERSIST binlog_order_commits = ON;",
    ),
    (
        "SET GLOBAL replica_preserve_commit_order = OFF;",
        "replica_preserve_commit_order is OFF",
        "SET PERSIST replica_preserve_commit_order = ON; \
         -- on a replica between STOP REPLICA SQL_THREAD and START REPLICA SQL_THREAD",
    ),
    ("SET GLOBAL sync_binlog = 1000;", "sync_binlog is 1000", "SET PERSIST sync_binlog = 1;"),
    (
        "SET GLOBAL innodb_flush_log_at_trx_commit = 2;",
        "innodb_flush_log_at_trx_commit is 2",
        "SET PERSIST innodb_flush_log_at_trx_commit = 1;",
    ),
    (
        "INSTALL PLUGIN group_replication SONAME 'group_replication.so'; \
         SET GLOBAL group_replication_group_name = '70c45b6e-0000-4000-8000-000000000000';",
        "group_replication_group_name is 70c45b6e-0000-4000-8000-000000000000",
        "STOP GROUP_REPLICATION; UNINSTALL PLUGIN group_replication;",
    ),
];

const TABLES: [Case; 6] = [
    (
        "ALTER TABLE post_likes MODIFY post_id VARCHAR(64) COLLATE utf8mb4_0900_ai_ci NOT NULL;",
        "collation of post_id is utf8mb4_0900_ai_ci",
        "ALTER TABLE likewise.post_likes MODIFY post_id VARCHAR(64) \
         CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin NOT NULL;",
    ),
    (
        "ALTER TABLE post_likes MODIFY user_id VARCHAR(64) COLLATE utf8mb4_bin NOT NULL;",
        "collation of user_id is utf8mb4_bin",
        "ALTER TABLE likewise.post_likes MODIFY user_id VARCHAR(64) \
         CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin NOT NULL;",
    ),
    (
        "CREATE TABLE posts (id VARCHAR(64) COLLATE utf8mb4_0900_bin PRIMARY KEY);
         ALTER TABLE post_likes ADD CONSTRAINT of_post
           FOREIGN KEY (post_id) REFERENCES posts (id) ON DELETE CASCADE;",
        "foreign key of_post is ON DELETE CASCADE ON UPDATE NO ACTION",
        "ALTER TABLE likewise.post_likes DROP FOREIGN KEY `of_post`;",
    ),
    (
        "ALTER TABLE post_likes ADD CONSTRAINT of_post
           FOREIGN KEY (post_id) REFERENCES posts (id) ON UPDATE CASCADE;",
        "foreign key of_post is ON DELETE NO ACTION ON UPDATE CASCADE",
        "ALTER TABLE likewise.post_likes DROP FOREIGN KEY `of_post`;",
    ),
    (
        "ALTER TABLE post_recounts ENGINE = MyISAM;",
        "engine is MyISAM",
        "ALTER TABLE likewise.post_recounts ENGINE = InnoDB;",
    ),
    (
        "ALTER TABLE partition_marks MODIFY mark_key VARCHAR(64) COLLATE utf8mb4_general_ci NOT NULL;",
        "collation of mark_key is utf8mb4_general_ci",
        "ALTER TABLE likewise.partition_marks MODIFY mark_key VARCHAR(64) \
         CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin NOT NULL;",
    ),
];

const WARNINGS: [Case; 5] = [
    (
        "SET GLOBAL binlog_row_metadata = MINIMAL;",
        "binlog_row_metadata is MINIMAL",
        "SET PERSIST binlog_row_metadata = FULL;",
    ),
    (
        "SET GLOBAL net_write_timeout = 60;",
        "net_write_timeout is 60",
        "SET PERSIST net_write_timeout = 600;",
    ),
    (
        "SET GLOBAL binlog_expire_logs_seconds = 3600;",
        "binlog_expire_logs_seconds is 3600",
        "SET PERSIST binlog_expire_logs_seconds = 604800;",
    ),
    (
        "GRANT DROP ON likewise.* TO likewise@'%';",
        "right of `likewise`@`%` on `likewise`.* is DROP",
        "REVOKE DROP ON `likewise`.* FROM `likewise`@`%`;",
    ),
    (
        "REVOKE SELECT ON performance_schema.events_transactions_history FROM likewise@'%';",
        "right of `likewise`@`%` on performance_schema.events_transactions_history is none",
        "GRANT SELECT ON performance_schema.events_transactions_history TO `likewise`@`%`;",
    ),
];

/// The one right that the application can do without.
async fn likes_go_on_without_the_names_of_transactions(mysqld: &Mysqld) {
    let history = "SELECT ON performance_schema.events_transactions_history";
    mysqld.run(&format!("REVOKE {history} FROM likewise@'%';")).await;
    let [(_, url), _] = mysqld.told();
    let deadline = Duration::from_secs(10);
    let settings = PoolSettings { url: url.to_owned(), max_connections: 1, tls_ca: None, deadline };
    let mysql = Mysql::new(&settings).expect("settings");
    let (ann, post) = (UserId::from_log("ann"), PostId::from_log("p"));
    for liked in [true, false] {
        let written = if liked {
            mysql.like(&ann, &post, None).await
        } else {
            mysql.unlike(&ann, &post, None).await
        };
        let written = written.expect("it writes");
        assert_eq!((written.liked, written.changed, written.transaction), (liked, true, None));
    }
    mysqld.run(&format!("GRANT {history} TO likewise@'%';")).await;
}

/// L8. The fix that is printed is what puts each right again.
#[tokio::test]
async fn each_setting_that_loses_likes_is_refused_and_its_fix_helps() {
    let _alone = alone().await;
    let mut mysqld = Mysqld::new().await;
    mysqld.start("").await;
    diagnose(&mysqld.told()).await.refuses("schema is missing", "likewise migrate");
    mysqld.migrate().await;
    diagnose(&mysqld.told()).await.is_fit();
    for (broken, found, fix) in VARIABLES.into_iter().chain(TABLES) {
        mysqld.run(broken).await;
        diagnose(&mysqld.told()).await.refuses(found, fix);
        mysqld.run(fix).await;
    }
    diagnose(&mysqld.told()).await.is_fit();
    for (broken, found, fix) in WARNINGS {
        mysqld.run(broken).await;
        diagnose(&mysqld.told()).await.warns(found, fix);
        mysqld.run(fix).await;
    }
    likes_go_on_without_the_names_of_transactions(&mysqld).await;
    let healed = diagnose(&mysqld.told()).await;
    healed.is_fit();
    healed.says("ok       MySQL");
    healed.says("ok       MySQL's binlog");

    mysqld.start("skip-log-bin").await;
    let fix = "put `log-bin = binlog` into MySQL's option file, and start MySQL again";
    diagnose(&mysqld.told()).await.refuses("log_bin is OFF", fix);
    let filters = "skip-log-replica-updates\nbinlog-do-db = other\nbinlog-ignore-db = likewise";
    mysqld.start(filters).await;
    let diagnosis = diagnose(&mysqld.told()).await;
    for (found, fix) in [
        (
            "log_replica_updates is OFF",
            "put `log-replica-updates = ON` into MySQL's option file, and start MySQL again",
        ),
        (
            "binlog-do-db is other",
            "take `binlog-do-db` out of MySQL's option file, and start MySQL again",
        ),
        (
            "binlog-ignore-db is likewise",
            "take `binlog-ignore-db` out of MySQL's option file, and start MySQL again",
        ),
    ] {
        diagnosis.refuses(found, fix);
    }
}
