//! Where in MySQL's history a change stands, and whether it was counted before.
//!
//! The numbers of two servers cannot be compared, so a partition keeps the last position of every
//! source and originating server. Within one server, transactions are ordered by their GTID number
//! and the rows of one transaction by (pos, row): a transaction that Debezium sends again has the
//! same ones. `total_order` only tells apart two changes of one row (a key-changing UPDATE).

use std::cmp::Ordering;
use std::fmt;

use compact_str::CompactString;

use crate::SourceName;

/// The server that a transaction was first committed on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Server {
    /// The UUID part of the GTID, as MySQL prints it.
    pub uuid: u128,
    /// The tag part of the GTID; numbers are counted per UUID and tag.
    pub tag: CompactString,
    /// `server_id` in the event's header.
    pub server_id: u64,
}

/// A binlog file: `binlog.000012` is file 12 of `binlog`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BinlogFile {
    name: CompactString,
    number: u64,
}

impl BinlogFile {
    /// Reads a file name; none when it does not end in a number.
    pub fn parse(name: &str) -> Option<Self> {
        let (_, number) = name.rsplit_once('.')?;
        Some(Self { number: number.parse().ok()?, name: name.into() })
    }

    /// The order of two files of one server; none when their base names differ.
    fn compare(&self, other: &Self) -> Option<Ordering> {
        let base = |file: &Self| file.name.rfind('.');
        let same_base = self.name[..base(self)?] == other.name[..base(other)?];
        same_base.then(|| self.number.cmp(&other.number))
    }
}

impl fmt::Display for BinlogFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Where one row change stands in MySQL's history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// Who committed it first.
    pub server: Server,
    /// The number part of the GTID.
    pub transaction: u64,
    /// The binlog file it was read from.
    pub file: BinlogFile,
    /// The place of its event in that file.
    pub pos: u64,
    /// Its row within the event, from 0.
    pub row: u64,
    /// Its place among the transaction's changes, from 1.
    pub total_order: u64,
}

/// What a partition can say of a change by its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Novelty {
    /// It stands after everything that was counted.
    New,
    /// It was counted.
    Repeat,
    /// Its position contradicts the last one; counting it would be a guess.
    CannotTell,
}

impl Position {
    /// Where this change stands against the last one counted of the same source and server.
    fn novelty(&self, last: &Self) -> Novelty {
        let place = self.file.compare(&last.file).map(|file| file.then(self.pos.cmp(&last.pos)));
        match self.transaction.cmp(&last.transaction) {
            Ordering::Greater => Novelty::New,
            Ordering::Less if place == Some(Ordering::Less) => Novelty::Repeat,
            Ordering::Less => Novelty::CannotTell,
            Ordering::Equal if self.file != last.file => Novelty::CannotTell,
            Ordering::Equal => {
                let row = (self.pos, self.row).cmp(&(last.pos, last.row));
                let order = self.total_order.cmp(&last.total_order);
                match (row, order) {
                    (Ordering::Greater | Ordering::Equal, Ordering::Greater) => Novelty::New,
                    (Ordering::Less | Ordering::Equal, Ordering::Less) => Novelty::Repeat,
                    (Ordering::Equal, Ordering::Equal) => Novelty::Repeat,
                    _ => Novelty::CannotTell,
                }
            }
        }
    }
}

/// The last position counted of each source and originating server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Positions(Vec<(SourceName, Position)>);

impl Positions {
    /// Whether a change at `position` of `source` was counted before.
    pub fn novelty(&self, source: &SourceName, position: &Position) -> Novelty {
        match self.find(source, &position.server) {
            Some(at) => position.novelty(&self.0[at].1),
            None => Novelty::New,
        }
    }

    /// Makes `position` the last one counted of its source and server.
    pub fn advance(&mut self, source: &SourceName, position: Position) {
        match self.find(source, &position.server) {
            Some(at) => self.0[at].1 = position,
            None => self.0.push((source.clone(), position)),
        }
    }

    /// Every last position, in the order in which the servers were first seen.
    pub fn iter(&self) -> impl Iterator<Item = (&SourceName, &Position)> {
        self.0.iter().map(|(source, position)| (source, position))
    }

    /// A partition knows a handful of servers at most: a scan beats a map.
    fn find(&self, source: &SourceName, server: &Server) -> Option<usize> {
        self.0.iter().position(|(known, last)| known == source && last.server == *server)
    }
}

impl FromIterator<(SourceName, Position)> for Positions {
    fn from_iter<I: IntoIterator<Item = (SourceName, Position)>>(positions: I) -> Self {
        Self(positions.into_iter().collect())
    }
}

#[cfg(test)]
#[path = "position/tests.rs"]
mod tests;
