//! What the tests of the formats share.
//!
//! | module | holds |
//! |---|---|
//! | [`fixture`] | the files under `tests/data` and, where there is one, of a larger corpus beside the checkout |
//! | [`mutate`] | cuts and flips, the same ones at each run |
//! | [`laws`] | what holds for every format: damage made by rule, work in proportion to the file |
//! | [`logged`], [`counted`] | sources that remember, and that count, what is read |
//! | [`alloc`] | an allocator that counts |
//! | [`folder`] | a directory in memory |
//! | [`guarded`] | memory whose neighbours nobody may touch |
//! | [`rows`] | scans, checked to be valid Arrow; rows as text |
//! | [`written`](mod@written) | files of the formats' own writers |
//! | [`layout`] | whether a tree of nodes gives each byte to one leaf |
//!
//! A fixture that is missing or a batch that breaks Arrow's rules panics: this crate runs in tests only.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "runs in tests only, where a wrong fixture must fail the test"
)]

pub mod alloc;
pub mod counted;
pub mod fixture;
pub mod folder;
pub mod guarded;
pub mod laws;
pub mod layout;
pub mod logged;
pub mod mutate;
pub mod rows;
pub mod written;

pub use fixture::Fixture;
pub use logged::Logged;
pub use mutate::Dice;
pub use written::written;
