//! Text of many tools, collectors, settings and the live machine.

mod collector;
mod collector_redaction;
mod facts;
mod live;
mod sample;
mod statistics;
mod texts;
mod trace;

/// What the text of one paste says.
fn read(text: &str) -> rxlane_host::Snapshot {
    read_all(&[text])
}

/// What the texts of several pastes of one machine say.
fn read_all(texts: &[&str]) -> rxlane_host::Snapshot {
    let mut reader = rxlane_host::text::Reader::new();
    for text in texts {
        reader.read("paste", text.as_bytes()).expect("memory");
    }
    reader.finish()
}
