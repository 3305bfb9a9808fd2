//! Just enough of an HTML reader to hold the page to its rules, strict where browsers are lenient.

use std::ops::Range;

/// Elements without an end tag (HTML Living Standard, section 13.1.2, "Void elements").
const VOID: [&str; 4] = ["meta", "wbr", "br", "hr"];

/// An element and where it stands.
#[derive(Debug)]
pub struct Element {
    pub name: String,
    pub attributes: Vec<(String, String)>,
    /// From its start tag to its end tag.
    place: Range<usize>,
}

impl Element {
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn has_class(&self, class: &str) -> bool {
        self.attribute("class").is_some_and(|classes| classes.split(' ').any(|known| known == class))
    }

    pub fn holds(&self, other: &Element) -> bool {
        self.place.start < other.place.start && other.place.end <= self.place.end
    }
}

/// All elements in the order of their start tags. An error where a tag has no partner, an attribute no
/// quotes or a value a raw `<`.
pub fn elements(html: &str) -> Result<Vec<Element>, String> {
    let mut elements: Vec<Element> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut at = html.find("<html").ok_or("no html element")?;
    while let Some(start) = html[at..].find('<').map(|offset| at + offset) {
        let end = start + tag_length(&html[start..]).ok_or(format!("tag at {start} has no end"))?;
        let tag = &html[start + 1..end - 1];
        at = end;
        if let Some(name) = tag.strip_prefix('/') {
            let opened = open.pop().ok_or(format!("</{name}> at {start} closes nothing"))?;
            let element = &mut elements[opened];
            if element.name != name {
                return Err(format!("</{name}> at {start} closes <{}>", element.name));
            }
            element.place.end = end;
            continue;
        }
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        if !name.starts_with(|c: char| c.is_ascii_lowercase())
            || !name.chars().all(|c| c.is_ascii_alphanumeric())
        {
            return Err(format!("<{name}> at {start} is no tag"));
        }
        elements.push(Element {
            name: name.to_owned(),
            attributes: attributes_of(attributes).ok_or(format!("attributes of <{tag}>"))?,
            place: start..end,
        });
        if name == "style" {
            at += html[at..].find("</style>").ok_or("style without end")?;
        }
        if !VOID.contains(&name) {
            open.push(elements.len() - 1);
        }
    }
    match open.last() {
        Some(open) => Err(format!("<{}> is never closed", elements[*open].name)),
        None => Ok(elements),
    }
}

/// Length of the tag that `html` begins with, `>` in quotes not counted.
fn tag_length(html: &str) -> Option<usize> {
    let mut quoted = false;
    html.char_indices().find_map(|(at, character)| {
        quoted ^= character == '"';
        (character == '>' && !quoted).then_some(at + 1)
    })
}

fn attributes_of(mut text: &str) -> Option<Vec<(String, String)>> {
    let mut attributes = Vec::new();
    while !text.is_empty() {
        let (name, rest) = text.split_once("=\"")?;
        let (value, rest) = rest.split_once('"')?;
        if value.contains('<') || name.contains(char::is_whitespace) {
            return None;
        }
        attributes.push((name.to_owned(), unescaped(value)));
        text = rest.strip_prefix(' ').unwrap_or(rest);
    }
    Some(attributes)
}

/// What a reader sees: the text without tags and style.
pub fn text(html: &str) -> String {
    let body = html.split_once("<body>").map_or("", |(_, body)| body);
    let mut shown = String::new();
    let mut rest = body;
    while let Some((before, tag)) = rest.split_once('<') {
        shown.push_str(before);
        rest = tag_length(&format!("<{tag}")).map_or("", |length| &tag[length - 1..]);
    }
    unescaped(&shown)
}

fn unescaped(text: &str) -> String {
    let characters = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")];
    characters.iter().fold(text.to_owned(), |text, (entity, character)| text.replace(entity, character))
}
