//! From a record's key and value to an entry.

use likewise_core::{
    BinlogFile, Change, Entry, Micros, Poison, Position, PostId, RowChange, Server, Skip,
    SourceName, Table,
};

use crate::envelope::{Envelope, Row, Source};
use crate::gtid::Gtid;

/// More rows than any table holds, and far from where sums end.
const MAX_LIKES: i64 = 1 << 53;
/// The end of the year 9999, where MySQL's times end.
const MAX_MICROS: i64 = 253_402_300_799_999_999;
/// The database that the three tables are in.
const DATABASE: &str = "likewise";

/// Reads one record. Whatever the bytes are, the answer is an entry: what cannot be read is poison,
/// with the post it was about where the row or the key names one.
pub fn decode(key: Option<&[u8]>, value: Option<&[u8]>) -> Entry {
    let Some(value) = value.filter(|value| !value.is_empty()) else {
        return Entry::Skip(Skip::Tombstone);
    };
    let key = key.and_then(|key| std::str::from_utf8(key).ok());
    let poison = |reason, post: Option<&str>| {
        let post = post.filter(|post| is_post(post)).map(PostId::from_log);
        Entry::poison(reason, post, value)
    };
    let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(value) else {
        return poison(Poison::NotAnEnvelope, key);
    };
    let Some(table) = table(&envelope.source) else {
        return Entry::Skip(Skip::ForeignTable);
    };
    let about = envelope.after.as_ref().or(envelope.before.as_ref());
    let id = about.and_then(|row| match table {
        Table::Marks => row.mark_key.as_deref(),
        Table::Likes | Table::Recounts => row.post_id.as_deref(),
    });
    let post = if table == Table::Marks { None } else { id.or(key) };

    match envelope.op.as_ref() {
        "r" => return Entry::SnapshotRow,
        "t" => return Entry::Truncate(table),
        "c" | "u" | "d" => {}
        _ => return poison(Poison::UnknownOperation, post),
    }
    let Some(row) = row_change(table, &envelope) else {
        return poison(Poison::IncompleteRow, post);
    };
    if id != key {
        return poison(Poison::WrongKey, post);
    }
    let Some(position) = position(&envelope) else {
        return poison(Poison::NoPosition, post);
    };
    let source = SourceName(envelope.source.name.as_ref().into());
    Entry::Change(Change { source, position, row })
}

/// A key of an unreadable value may be a mark's, or anything: a post's id has 1 to 64 characters, and
/// what MySQL cannot hold can never be recounted.
fn is_post(key: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let mark = key.strip_prefix("mark-").and_then(|rest| rest.split_once('-'));
    let is_mark =
        mark.is_some_and(|(partition, attempt)| is_number(partition) && is_number(attempt));
    !is_mark && (1..=64).contains(&key.chars().count())
}

fn table(source: &Source<'_>) -> Option<Table> {
    if source.db != DATABASE {
        return None;
    }
    match source.table.as_deref()? {
        "post_likes" => Some(Table::Likes),
        "post_recounts" => Some(Table::Recounts),
        "partition_marks" => Some(Table::Marks),
        _ => None,
    }
}

/// What the change does; none when a row image or a field that it needs is missing.
fn row_change(table: Table, envelope: &Envelope<'_>) -> Option<RowChange> {
    let (before, after) = match envelope.op.as_ref() {
        "c" => (None, Some(envelope.after.as_ref()?)),
        "d" => (Some(envelope.before.as_ref()?), None),
        _ => (Some(envelope.before.as_ref()?), Some(envelope.after.as_ref()?)),
    };
    match table {
        Table::Likes => edge(before, after),
        Table::Recounts => match after {
            Some(row) => {
                let likes = row.likes.filter(|likes| (0..=MAX_LIKES).contains(likes))?;
                Some(RowChange::Recount { post: post(row)?, likes })
            }
            None => Some(RowChange::Nothing),
        },
        Table::Marks => match after {
            Some(row) => Some(RowChange::Mark {
                before: match before {
                    Some(row) => Some(time(row)?),
                    None => None,
                },
                at: time(row)?,
            }),
            None => Some(RowChange::Nothing),
        },
    }
}

/// liked(after) − liked(before). Debezium sends an UPDATE of a key as a deletion and a creation, so
/// both images are of one post.
fn edge(before: Option<&Row<'_>>, after: Option<&Row<'_>>) -> Option<RowChange> {
    let liked = |row: Option<&Row<'_>>| match row {
        Some(row) => row.liked.map(|liked| liked.as_count()),
        None => Some(0),
    };
    let delta = liked(after)? - liked(before)?;
    let post_after = post(after.or(before)?)?;
    if before.is_some_and(|row| row.post_id.as_deref() != Some(post_after.as_str())) {
        return None;
    }
    Some(RowChange::Edge { post: post_after, delta })
}

fn time(row: &Row<'_>) -> Option<Micros> {
    row.at.filter(|at| (0..=MAX_MICROS).contains(at)).map(Micros)
}

fn post(row: &Row<'_>) -> Option<PostId> {
    row.post_id.as_deref().map(PostId::from_log)
}

fn position(envelope: &Envelope<'_>) -> Option<Position> {
    let source = &envelope.source;
    let gtid = Gtid::parse(source.gtid.as_deref()?)?;
    let total_order = envelope.transaction.as_ref()?.total_order;
    // Whatever MySQL counts fits into 63 bits, and so does what a checkpoint holds.
    let numbers = [source.server_id, gtid.number, source.pos, source.row, total_order];
    if numbers.iter().any(|number| i64::try_from(*number).is_err()) {
        return None;
    }
    Some(Position {
        server: Server { uuid: gtid.uuid, tag: gtid.tag.into(), server_id: source.server_id },
        transaction: gtid.number,
        file: BinlogFile::parse(&source.file)?,
        pos: source.pos,
        row: source.row,
        total_order,
    })
}

#[cfg(test)]
#[path = "decode/tests.rs"]
mod tests;
