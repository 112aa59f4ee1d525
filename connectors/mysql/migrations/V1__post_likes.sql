-- One row an edge: this user likes this post. Ids compare byte for byte.
CREATE TABLE IF NOT EXISTS post_likes (
    user_id  VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin NOT NULL,
    post_id  VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin NOT NULL,
    liked    BOOL        NOT NULL,
    seq      BIGINT      NULL,
    liked_at DATETIME(6) NOT NULL,
    PRIMARY KEY (user_id, post_id),
    KEY newest_likes_of_user (user_id, liked, liked_at, post_id),
    KEY newest_likers_of_post (post_id, liked, liked_at, user_id)
) ENGINE = InnoDB;
