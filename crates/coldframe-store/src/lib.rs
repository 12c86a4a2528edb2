//! Where bytes lie: local files, object stores, web servers.
