//! One stack, spoken to from outside. Each test has posts and users of its own, so they run together.

mod counts;
mod deletions;
mod documents;
mod identity;
mod lists;
mod log;
mod own_count;
mod problems;
mod recounts;
mod sequences;
mod stream;
mod writes;
