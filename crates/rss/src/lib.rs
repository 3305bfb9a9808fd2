//! rss
