//! `counts_<generation>`: one small document a post, and each source's share of its count.
//!
//! ```text
//! { _id: "p1", n: 42 }                                       one source
//! { _id: "p1", n: 42, shares: { "1": 5 } }                   several: source 0 has the rest, 37
//! { _id: "p1", n: 42, repair: { "0": true } }                source 0's share is in doubt
//! ```
//! A post's partition numbers the sources (its checkpoint's `sources`). While there is one, a batch's
//! effect is a plain increment.

use std::collections::BTreeMap;

use likewise_core::{Batch, CountEffect, PostEffect, PostId, Repair, SourceNumber};
use mongodb::bson::{Bson, Document, RawArrayBuf, RawBson, RawDocumentBuf, doc, rawdoc};

/// What a batch does to one source's share.
#[derive(Clone, Copy, Debug, Default)]
struct ShareEffect {
    count: PostEffect,
    /// Whether it is in doubt at the end of the batch.
    repair: bool,
}

type Effects<'a> = BTreeMap<&'a PostId, BTreeMap<SourceNumber, ShareEffect>>;

/// One statement a post.
pub(crate) fn count_statements(batch: &Batch) -> Vec<RawDocumentBuf> {
    let mut effects: Effects<'_> = BTreeMap::new();
    for CountEffect { post, source, effect } in &batch.counts {
        effects.entry(post).or_default().entry(*source).or_default().count = *effect;
    }
    for Repair { post, source, .. } in &batch.repairs {
        effects.entry(post).or_default().entry(*source).or_default().repair = true;
    }
    let sources = batch.checkpoint.sources.len();
    let statement = |(post, effects): (&PostId, BTreeMap<SourceNumber, ShareEffect>)| {
        let update = match effects.get(&0) {
            Some(effect) if sources <= 1 => RawBson::Document(only_source(*effect)),
            _ => several_sources(sources, &effects),
        };
        rawdoc! { "q": { "_id": post.as_str() }, "u": update, "upsert": true }
    };
    effects.into_iter().map(statement).collect()
}

fn only_source(ShareEffect { count, repair }: ShareEffect) -> RawDocumentBuf {
    match (count.set, repair) {
        (None, false) => rawdoc! { "$inc": { "n": count.add } },
        (None, true) => rawdoc! { "$inc": { "n": count.add }, "$set": { "repair.0": true } },
        // Shares and doubts of other sources are left from before new positions began.
        (Some(likes), false) => rawdoc! {
            "$set": { "n": likes.saturating_add(count.add) },
            "$unset": { "repair": "", "shares": "" },
        },
        (Some(likes), true) => rawdoc! {
            "$set": { "n": likes.saturating_add(count.add), "repair": { "0": true } },
            "$unset": { "shares": "" },
        },
    }
}

/// A pipeline: each share that the batch touches is computed from what is stored, and the count is the
/// sum of all. Every expression reads the document as it was.
fn several_sources(sources: usize, effects: &BTreeMap<SourceNumber, ShareEffect>) -> RawBson {
    let mut set = Document::new();
    let mut sum: Vec<Bson> = Vec::new();
    let mut settled: Vec<String> = Vec::new();
    for source in 0..sources {
        let ShareEffect { count, repair } = effects.get(&source).copied().unwrap_or_default();
        let share: Bson = match count.set {
            Some(likes) => likes.saturating_add(count.add).into(),
            None => doc! { "$add": [stored_share(source, sources), count.add] }.into(),
        };
        if source > 0 && (count.set.is_some() || count.add != 0) {
            set.insert(format!("shares.{source}"), share.clone());
        }
        if repair {
            set.insert(format!("repair.{source}"), true);
        } else if count.set.is_some() {
            settled.push(format!("repair.{source}"));
        }
        sum.push(share);
    }
    set.insert("n", doc! { "$add": sum });
    let mut pipeline = vec![doc! { "$set": set }];
    if !settled.is_empty() {
        pipeline.push(doc! { "$unset": settled });
    }
    let mut array = RawArrayBuf::new();
    for stage in &pipeline {
        array.push(RawDocumentBuf::try_from(stage).expect("numbers and names can be encoded"));
    }
    RawBson::Array(array)
}

/// The expression for a share before the batch.
fn stored_share(source: SourceNumber, sources: usize) -> Bson {
    let field = |name: String| doc! { "$ifNull": [name, 0_i64] };
    if source > 0 {
        return field(format!("$shares.{source}")).into();
    }
    let others = (1..sources).map(|other| Bson::from(field(format!("$shares.{other}"))));
    let others = doc! { "$add": others.collect::<Vec<_>>() };
    doc! { "$subtract": [field("$n".to_owned()), others] }.into()
}

/// One source's share of a stored count.
pub(crate) fn share_of(stored: &Document, source: SourceNumber) -> i64 {
    let shares = stored.get_document("shares").ok();
    let share = |name: &str| shares.and_then(|shares| shares.get_i64(name).ok()).unwrap_or(0);
    if source > 0 {
        return share(&source.to_string());
    }
    let others: i64 = shares.iter().flat_map(|shares| shares.keys()).map(|name| share(name)).sum();
    stored.get_i64("n").unwrap_or(0) - others
}
