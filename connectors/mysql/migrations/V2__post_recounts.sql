-- Absolute truths: at its place in the binlog, the post has exactly this many likes.
CREATE TABLE IF NOT EXISTS post_recounts (
    post_id      VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin NOT NULL,
    likes        BIGINT      NOT NULL,
    nonce        BINARY(16)  NOT NULL,
    requested_at DATETIME(6) NOT NULL,
    PRIMARY KEY (post_id)
) ENGINE = InnoDB;
