//! What the commands print and how they end: files in, text out.

// Pages are rendered here from reports that no capture gives.
#[path = "../../src/explain_command/page/mod.rs"]
mod explain_html;
#[path = "../../src/page/mod.rs"]
mod page;

mod collect;
mod commands;
mod corpus;
mod dissector;
mod doctor;
mod explain;
mod explain_page;
mod fleet;
mod gen_command;
mod language;
mod model;
mod nics;
mod own_captures;
mod packaging;
mod rss;
mod run;
mod schemas;
mod steer;
