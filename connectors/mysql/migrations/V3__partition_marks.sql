-- One row a Kafka partition, under a key that falls into it: the time, in log order.
CREATE TABLE IF NOT EXISTS partition_marks (
    mark_key VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin NOT NULL,
    at       DATETIME(6) NOT NULL,
    PRIMARY KEY (mark_key)
) ENGINE = InnoDB;
