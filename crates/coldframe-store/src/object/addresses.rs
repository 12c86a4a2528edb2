//! The addresses of a host in random order, so that the readers of a store spread over its servers.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::ToSocketAddrs;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Looks up names as the system does.
#[derive(Debug)]
pub(super) struct Shuffled;

impl Resolve for Shuffled {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        Box::pin(async move {
            let look = move || (host.as_str(), 0).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
            let mut addresses = tokio::task::spawn_blocking(look).await??;
            // A hasher has random keys.
            let random = RandomState::new();
            addresses.sort_by_cached_key(|address| random.hash_one(address));
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}
