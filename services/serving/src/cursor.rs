//! Cursors: where a list goes on, sealed, so that only a list of ours can have made them.
//!
//! ```text
//! base64url( version: 1 byte ‖ liked_at: 8 bytes ‖ id: the rest ‖ tag: 32 bytes )
//! ```
//! The tag is HMAC-SHA-256 of everything before it and of the list, which is not written down: a cursor of
//! another list, or of another user's or post's, has another tag.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use likewise_core::{Micros, Place};
use sha2::Sha256;

use crate::{Kind, Problem};

/// Raised when the bytes get another meaning: older cursors are refused then.
const VERSION: u8 = 1;
const TIME_BYTES: usize = 8;
const TAG_BYTES: usize = 32;

/// Which list a cursor belongs to, and whose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List<'a> {
    /// The posts that this user likes.
    LikesOfUser(&'a str),
    /// The users who like this post.
    LikersOfPost(&'a str),
}

/// Makes and reads cursors with one key, which all instances share.
#[derive(Clone)]
pub struct Cursors(Hmac<Sha256>);

impl fmt::Debug for Cursors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cursors(***)")
    }
}

impl Cursors {
    /// With a key of any length; one shorter than 32 bytes is easier to guess than the tag.
    pub fn new(key: &str) -> Self {
        Self(Hmac::new_from_slice(key.as_bytes()).expect("a key of any length will do"))
    }

    /// The place that a cursor of this list stands for; none without a cursor.
    pub fn open(&self, list: List<'_>, cursor: Option<&str>) -> Result<Option<Place>, Problem> {
        let invalid = || {
            Problem::new(
                Kind::InvalidCursor,
                "the cursor must be a next_cursor of this very list, unchanged; begin again without one",
            )
        };
        cursor.map(|text| self.read(list, text).ok_or_else(invalid)).transpose()
    }

    /// Cuts what was read down to `limit` entries, and makes the cursor of the next page; none where nothing
    /// follows. To know that, one more than `limit` must have been asked for.
    pub fn cut(&self, list: List<'_>, found: &mut Vec<Place>, limit: u32) -> Option<String> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        if found.len() <= limit {
            return None;
        }
        found.truncate(limit);
        found.last().map(|last| self.write(list, last))
    }

    fn write(&self, list: List<'_>, place: &Place) -> String {
        let mut bytes = vec![VERSION];
        bytes.extend_from_slice(&place.liked_at.0.to_be_bytes());
        bytes.extend_from_slice(place.id.as_bytes());
        let tag = self.mac(list, &bytes).finalize().into_bytes();
        bytes.extend_from_slice(&tag);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    fn read(&self, list: List<'_>, text: &str) -> Option<Place> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (sealed, tag) = bytes.split_at_checked(bytes.len().checked_sub(TAG_BYTES)?)?;
        // In constant time.
        self.mac(list, sealed).verify_slice(tag).ok()?;
        let (version, rest) = sealed.split_first()?;
        let (time, id) = rest.split_first_chunk::<TIME_BYTES>()?;
        let id = std::str::from_utf8(id).ok()?;
        (*version == VERSION)
            .then(|| Place { liked_at: Micros(i64::from_be_bytes(*time)), id: id.into() })
    }

    /// Each part with its length before it, so that no two lists can be told as one.
    fn mac(&self, list: List<'_>, sealed: &[u8]) -> Hmac<Sha256> {
        let (name, of) = match list {
            List::LikesOfUser(user) => ("likes-of-user", user),
            List::LikersOfPost(post) => ("likers-of-post", post),
        };
        let mut mac = self.0.clone();
        for part in [b"likewise-cursor", name.as_bytes(), of.as_bytes(), sealed] {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "a key of more than 32 characters, surely";
    const LIST: List<'_> = List::LikesOfUser("ann");

    fn place(id: &str) -> Place {
        Place { liked_at: Micros(1_795_990_384_247_557), id: id.into() }
    }

    fn slug(refused: Result<Option<Place>, Problem>) -> Kind {
        refused.expect_err("it must be refused").kind()
    }

    #[test]
    fn a_cursor_leads_back_to_its_place() {
        let cursors = Cursors::new(KEY);
        for place in [place("p1"), place("é "), Place { liked_at: Micros(-1), ..place("x") }] {
            let mut found = vec![place.clone(), place.clone()];
            let cursor = cursors.cut(LIST, &mut found, 1).expect("one follows");
            assert_eq!((found.len(), &found[0]), (1, &place));
            assert_eq!(cursors.open(LIST, Some(&cursor)), Ok(Some(place)));
        }
        assert_eq!(cursors.open(LIST, None), Ok(None));
        assert_eq!(cursors.cut(LIST, &mut vec![place("p1")], 1), None, "nothing follows");
    }

    /// As the documents describe it.
    #[test]
    fn a_cursor_has_56_to_396_characters() {
        let cursors = Cursors::new(KEY);
        let length = |id: &str| cursors.write(LIST, &place(id)).len();
        assert_eq!((length("x"), length(&"\u{10348}".repeat(64))), (56, 396));
    }

    /// P2
    #[test]
    fn a_cursor_that_is_cut_or_changed_anywhere_is_refused() {
        let cursors = Cursors::new(KEY);
        let cursor = cursors.write(LIST, &place("p1"));
        for end in 0..cursor.len() {
            assert_eq!(slug(cursors.open(LIST, Some(&cursor[..end]))), Kind::InvalidCursor);
        }
        for at in 0..cursor.len() {
            for other in ["A", "B", "_", "=", "é", "%"] {
                let changed = format!("{}{other}{}", &cursor[..at], &cursor[at + 1..]);
                if changed != cursor {
                    assert_eq!(slug(cursors.open(LIST, Some(&changed))), Kind::InvalidCursor);
                }
            }
        }
        for longer in [format!("{cursor}A"), format!("{cursor}="), format!(" {cursor}")] {
            assert_eq!(slug(cursors.open(LIST, Some(&longer))), Kind::InvalidCursor);
        }
    }

    /// P2
    #[test]
    fn a_cursor_of_another_list_key_or_version_is_refused() {
        let cursors = Cursors::new(KEY);
        let cursor = cursors.write(LIST, &place("p1"));
        for list in [List::LikesOfUser("ben"), List::LikersOfPost("ann"), List::LikesOfUser("")] {
            assert_eq!(slug(cursors.open(list, Some(&cursor))), Kind::InvalidCursor);
        }
        let others = Cursors::new("another key of more than 32 characters");
        assert_eq!(slug(others.open(LIST, Some(&cursor))), Kind::InvalidCursor);

        let mut older = vec![VERSION - 1];
        older.extend_from_slice(&[0; TIME_BYTES]);
        older.extend_from_slice(b"p1");
        let tag = cursors.mac(LIST, &older).finalize().into_bytes();
        older.extend_from_slice(&tag);
        let older = URL_SAFE_NO_PAD.encode(older);
        assert_eq!(slug(cursors.open(LIST, Some(&older))), Kind::InvalidCursor);
    }
}
