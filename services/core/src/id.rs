//! Ids as callers may write them, and as the log carries them.

use std::fmt;

use compact_str::CompactString;

const MAX_LEN: usize = 64;

/// Why a caller's id was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidId {
    /// Shorter than 1 or longer than 64 characters.
    #[error("must have 1 to 64 characters")]
    Length,
    /// A character outside letters, digits and `-._~:@+=`.
    #[error("may hold only letters, digits and -._~:@+=")]
    Character,
    /// `.` and `..` are path segments that clients and proxies remove.
    #[error("must not be . or ..")]
    DotSegment,
}

fn check(text: &str) -> Result<(), InvalidId> {
    if text.is_empty() || text.chars().count() > MAX_LEN {
        return Err(InvalidId::Length);
    }
    if !text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~:@+=".contains(&b)) {
        return Err(InvalidId::Character);
    }
    if text == "." || text == ".." {
        return Err(InvalidId::DotSegment);
    }
    Ok(())
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(CompactString);

        impl $name {
            /// Checks an id that a caller wrote: 1–64 of letters, digits and `-._~:@+=`, not `.` or `..`.
            pub fn parse(text: &str) -> Result<Self, InvalidId> {
                check(text)?;
                Ok(Self(text.into()))
            }

            /// Takes an id as it stands in MySQL or in the log, where an import may have put any text.
            pub fn from_log(text: &str) -> Self {
                Self(text.into())
            }

            /// The id, byte for byte.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(
    /// What is liked. Compared byte for byte.
    PostId
);
id!(
    /// Who likes. Compared byte for byte.
    UserId
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_outside_the_alphabet_are_refused_and_neighbours_stay_distinct() {
        for bad in ["", ".", "..", "a b", "a/b", "é", "a,b", "a%20", "x\u{301}"] {
            assert!(PostId::parse(bad).is_err(), "{bad:?} was taken");
        }
        assert_eq!(PostId::parse(&"x".repeat(65)), Err(InvalidId::Length));
        assert!(PostId::parse(&"x".repeat(64)).is_ok());
        assert!(PostId::parse("...").is_ok());
        assert_ne!(PostId::parse("aB"), PostId::parse("ab"));
        assert_ne!(PostId::parse("1234567890123456788"), PostId::parse("1234567890123456789"));
    }
}
