-- Receipts: all likes of a user, or all of a post, are to be deleted. At most one of each is open.
CREATE TABLE IF NOT EXISTS deletions (
    id           CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    kind         ENUM('user', 'post') NOT NULL,
    subject      VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin NOT NULL,
    edges        BIGINT      NOT NULL DEFAULT 0,
    requested_at DATETIME(6) NOT NULL,
    worked_at    DATETIME(6) NOT NULL,
    done_at      DATETIME(6) NULL,
    still_open   BOOL GENERATED ALWAYS AS (IF(done_at IS NULL, TRUE, NULL)) VIRTUAL,
    PRIMARY KEY (id),
    UNIQUE KEY one_open (kind, subject, still_open),
    KEY longest_waiting (still_open, worked_at),
    KEY oldest_done (done_at)
) ENGINE = InnoDB;
