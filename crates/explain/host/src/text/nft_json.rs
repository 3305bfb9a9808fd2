//! `nft -j list ruleset` and `nft -j list flowtables` (libnftables-json(5)), on one line or over many.
//!
//! The list is read element by element, so that what a terminal or this reader cuts off costs itself alone. A rule becomes the
//! words that `nft` would print without `-j`, as far as they matter, and is read as those.

use super::nft::{self, All};
use super::nft_rule::{Chain, Rules};
use super::{Line, Outcome, Section, Tool, sysctl_machine};
use crate::{Quote, Snapshot, System};
use serde::Deserialize;
use serde_json::Value;

/// Bytes of an element that are kept: a rule with a set of a thousand elements takes no more.
const LONGEST: usize = 64 * 1024;

pub(super) static TOOL: Tool = Tool {
    name: "nft -j list",
    command: |command| {
        command.program == "nft"
            && command.text.split_whitespace().any(|word| matches!(word, "-j" | "--json"))
    },
    heading: |line| {
        line.strip_prefix('{').is_some_and(|rest| rest.trim_start().starts_with("\"nftables\""))
            || line == "\"nftables\": ["
    },
    open: |context| Box::new(List { all: All::of(context), ..List::default() }),
};

/// The list while it is being read.
#[derive(Default)]
struct List {
    /// Braces and brackets that are open.
    depth: usize,
    /// The element that is being read.
    element: String,
    is_quoted: bool,
    is_escaped: bool,
    rules: Rules,
    all: All,
    is_done: bool,
    begun: bool,
}

/// Depth of an element's own braces: within those of the object and the list.
const ELEMENT: usize = 3;

impl List {
    fn read(&mut self, text: &str, quote: &Quote, snapshot: &mut Snapshot) {
        for letter in text.chars() {
            if self.depth >= ELEMENT && self.element.len() <= LONGEST {
                self.element.push(letter);
            }
            if self.is_quoted {
                self.is_quoted = letter != '"' || self.is_escaped;
                self.is_escaped = letter == '\\' && !self.is_escaped;
                continue;
            }
            match letter {
                '"' => self.is_quoted = true,
                '{' | '[' => {
                    self.depth += 1;
                    if self.depth == ELEMENT {
                        self.element = letter.to_string();
                    }
                }
                '}' | ']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth + 1 == ELEMENT {
                        let element = std::mem::take(&mut self.element);
                        self.element(&element, quote, snapshot);
                    }
                    self.is_done |= self.depth == 0;
                }
                _ => {}
            }
        }
        // A string ends on its line, or was cut off with it.
        self.is_quoted = false;
    }

    fn element(&mut self, text: &str, quote: &Quote, snapshot: &mut Snapshot) {
        let Ok(element) = serde_json::from_str::<Element>(text) else { return };
        // The list may be one line: the element itself is the evidence.
        let quote = &Quote::new(&quote.source, quote.line, quote.command.as_ref(), text);
        match element {
            Element::Flowtable(table) => {
                let place =
                    nft::begin(&format!("{} {}", table.family, table.table), &table.name, quote, snapshot);
                if let Some(known) = snapshot.netfilter.flowtables.get_mut(place) {
                    known.devices = words(&table.dev).into_iter().take(Snapshot::INTERFACES).collect();
                    known.hardware = Some(words(&table.flags).iter().any(|flag| flag == "offload"));
                    known.counter = words(&table.flags).iter().any(|flag| flag == "counter");
                    known.priority = table.prio.map(|priority| priority.to_string());
                }
            }
            Element::Chain(chain) => {
                self.rules
                    .begin(Chain { table: format!("{} {}", chain.family, chain.table), name: chain.name });
                if let Some(hook) = &chain.hook {
                    self.rules.hooked(hook, chain.prio, snapshot);
                    self.rules.policy(chain.policy.as_deref().unwrap_or_default(), snapshot);
                }
            }
            Element::Rule(rule) => {
                let table = format!("{} {}", rule.family, rule.table);
                self.rules.begin(Chain { table, name: rule.chain });
                self.rules.statement(&statement(&rule.expr), quote, snapshot);
            }
            Element::Other => {}
        }
    }
}

impl Section for List {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        let text = line.trimmed();
        if self.is_done {
            return Outcome::Over;
        }
        if !self.begun {
            match text.as_bytes().first() {
                None => return Outcome::Skipped,
                Some(b'{') => {}
                // Somebody copied it without its first line.
                Some(b'"') if text.starts_with("\"nftables\"") => self.depth = 1,
                Some(_) => return Outcome::Over,
            }
            self.begun = true;
            sysctl_machine::infer(snapshot, System::Linux, &line.quote());
        }
        let quote = line.quote();
        self.read(text, &quote, snapshot);
        if self.is_done {
            self.all.note(&quote, snapshot);
        }
        Outcome::Taken
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Element {
    Flowtable(Table),
    Chain(Named),
    Rule(Rule),
    #[serde(untagged)]
    Other,
}

#[derive(Deserialize)]
struct Table {
    family: String,
    table: String,
    name: String,
    /// A name or a list of names.
    #[serde(default)]
    dev: Value,
    #[serde(default)]
    flags: Value,
    prio: Option<i32>,
}

#[derive(Deserialize)]
struct Named {
    family: String,
    table: String,
    name: String,
    hook: Option<String>,
    prio: Option<i32>,
    policy: Option<String>,
}

#[derive(Deserialize)]
struct Rule {
    family: String,
    table: String,
    chain: String,
    expr: Vec<Value>,
}

/// A string, or the strings of a list.
fn words(value: &Value) -> Vec<String> {
    match value {
        Value::String(word) => vec![word.clone()],
        Value::Array(all) => all.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// The rule as words.
fn statement(expressions: &[Value]) -> String {
    let parts: Vec<String> = expressions.iter().map(part).filter(|part| !part.is_empty()).collect();
    parts.join(" ")
}

/// A statement of a rule; empty for those that change nothing here.
fn part(expression: &Value) -> String {
    let Some((kind, value)) = expression.as_object().and_then(|object| object.iter().next()) else {
        return expression.as_str().unwrap_or_default().to_owned();
    };
    match kind.as_str() {
        "match" => {
            let (left, right) = (matched(&value["left"]), operand(&value["right"]));
            let negation = if value["op"] == "!=" { "!= " } else { "" };
            format!("{left} {negation}{right}")
        }
        "vmap" => {
            let pairs = value["data"]["set"].as_array().into_iter().flatten();
            let pair = |pair: &Value| format!("{} : {}", operand(&pair[0]), part(&pair[1]));
            format!(
                "{} vmap {{ {} }}",
                matched(&value["key"]),
                pairs.map(pair).collect::<Vec<_>>().join(", ")
            )
        }
        "flow" => {
            let name = value["flowtable"].as_str().unwrap_or_default();
            format!("flow {} {name}", value["op"].as_str().unwrap_or_default())
        }
        "mangle" => format!("{} set {}", matched(&value["key"]), operand(&value["value"])),
        "jump" | "goto" => format!("{kind} {}", value["target"].as_str().unwrap_or_default()),
        "counter" => match value["packets"].as_u64() {
            Some(packets) => format!("counter packets {packets} bytes 0"),
            None => "counter".to_owned(),
        },
        // What it does is no matter, but that it is there.
        kind => kind.to_owned(),
    }
}

/// What is compared: `iifname`, `ct state`, `ip protocol`.
fn matched(value: &Value) -> String {
    let Some((kind, value)) = value.as_object().and_then(|object| object.iter().next()) else {
        return String::new();
    };
    let key = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
    match kind.as_str() {
        "meta" if matches!(value["key"].as_str(), Some("l4proto" | "mark" | "nfproto")) => {
            format!("meta {}", key("key"))
        }
        "meta" => key("key"),
        "ct" => format!("ct {}", key("key")),
        "payload" => format!("{} {}", key("protocol"), key("field")),
        // A mark behind a mask.
        "&" | "|" | "^" => matched(&value[0]),
        kind => kind.to_owned(),
    }
}

/// What it is compared with.
fn operand(value: &Value) -> String {
    match value {
        Value::String(word) => word.clone(),
        Value::Number(number) => number.to_string(),
        Value::Array(all) => all.iter().map(operand).collect::<Vec<_>>().join(","),
        Value::Object(object) => match object.get("set") {
            Some(Value::Array(all)) => {
                format!("{{ {} }}", all.iter().map(operand).collect::<Vec<_>>().join(", "))
            }
            _ => String::new(),
        },
        _ => String::new(),
    }
}
