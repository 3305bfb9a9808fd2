//! What the pages of `explain --html` and `doctor --html` share: one file, no script, nothing loaded from anywhere.
//! A page reads on a phone, on a desk, in the dark and on paper (`page.css`). Everything that was read from a file or
//! a machine passes through the template's escaping.

pub mod figures;
pub mod table;

use format::printable_up_to;
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// What a browser may load for this page: nothing. Its style is inline.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

pub fn document(title: &str, schema: &str, body: Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "rxlane " (env!("CARGO_PKG_VERSION")) };
                title { (title) }
                style { (PreEscaped(include_str!("page.css"))) }
            }
            body {
                (body)
                footer { "rxlane " (env!("CARGO_PKG_VERSION")) " · schema " (schema) }
            }
        }
    };
    page.into_string()
}

pub fn lead(sentences: &[String]) -> Markup {
    // A percent sign alone on a line would look lost.
    let sentences = sentences.iter().map(|sentence| printable_up_to(sentence, 1000).replace(" %", "\u{a0}%"));
    html! {
        @if sentences.len() > 0 {
            section.lead aria-label="Conclusion" { @for sentence in sentences { p { bdi { (prose(&sentence)) } } } }
        }
    }
}

/// Text in which commands stand between backticks.
pub fn prose(text: &str) -> Markup {
    html! {
        @for (at, part) in text.split('`').enumerate() {
            @if at % 2 == 0 { (part) } @else { code { (unbroken(part)) } }
        }
    }
}

/// A command whose options stay on one line with their dash.
pub fn unbroken(command: &str) -> Markup {
    html! {
        @for (at, word) in command.split(' ').enumerate() {
            @if at > 0 { " " }
            @if word.len() <= 20 { span.unbroken { (word) } } @else { (word) }
        }
    }
}
