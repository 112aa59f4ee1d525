-- Rows that are not liked, oldest first: what the sweeper asks for. Harmless to run again.
SET @make_index = IF(
    EXISTS (SELECT 1 FROM information_schema.STATISTICS
            WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'post_likes' AND INDEX_NAME = 'oldest_by_state'),
    'DO 0',
    'CREATE INDEX oldest_by_state ON post_likes (liked, liked_at)');
PREPARE make_index FROM @make_index;
EXECUTE make_index;
DEALLOCATE PREPARE make_index;
