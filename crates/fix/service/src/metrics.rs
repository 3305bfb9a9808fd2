//! Metrics: a page of figures, as monitoring systems read it, and the server of that page.
//!
//! A page is written in one of two formats, which differ in little: OpenMetrics 1.0, and the text format of Prometheus (exposition
//! format 0.0.4), which the textfile collector of node_exporter takes.
//!
//! Names never change once released; units are in them. Text from outside stands in labels only, where it is escaped.

mod server;

pub use server::{Address, Publisher, Server, unservable};

use std::fmt::{Display, Write as _};

/// How a page is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Exposition format 0.0.4 of Prometheus.
    Prometheus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Counter,
    Gauge,
}

/// Families of metrics, in the order in which they were first named.
#[derive(Clone, Debug, Default)]
pub struct Page(Vec<Family>);

/// Samples of one name.
#[derive(Clone, Debug)]
pub struct Family {
    /// Without `_total`.
    name: &'static str,
    of: Type,
    help: &'static str,
    /// Labels and value of each.
    samples: Vec<String>,
}

impl Page {
    /// Nothing.
    pub const fn new() -> Page {
        Page(Vec::new())
    }

    /// Whether nothing was added yet.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A family that only grows, until what counts begins anew; `name` is without `_total`.
    pub fn counter(&mut self, name: &'static str, help: &'static str) -> &mut Family {
        self.family(name, Type::Counter, help)
    }

    /// A family of what is so now.
    pub fn gauge(&mut self, name: &'static str, help: &'static str) -> &mut Family {
        self.family(name, Type::Gauge, help)
    }

    fn family(&mut self, name: &'static str, of: Type, help: &'static str) -> &mut Family {
        let place = self.0.iter().position(|family| family.name == name).unwrap_or_else(|| {
            self.0.push(Family { name, of, help, samples: Vec::new() });
            self.0.len() - 1
        });
        &mut self.0[place]
    }

    /// The page. Families without samples are left out.
    pub fn text(&self, format: Format) -> String {
        let mut text = String::new();
        for Family { name, of, help, samples } in self.0.iter().filter(|family| !family.samples.is_empty()) {
            let (word, total) = match of {
                Type::Counter => ("counter", "_total"),
                Type::Gauge => ("gauge", ""),
            };
            // Prometheus calls a family of counters by the name of its samples.
            let of_family = if format == Format::Prometheus { total } else { "" };
            // Writing to a string does not fail.
            let _ = writeln!(text, "# HELP {name}{of_family} {help}\n# TYPE {name}{of_family} {word}");
            for sample in samples {
                let _ = writeln!(text, "{name}{total}{sample}");
            }
        }
        if format == Format::OpenMetrics {
            text.push_str("# EOF\n");
        }
        text
    }
}

impl Family {
    /// A sample, with names and values of its labels.
    pub fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) -> &mut Family {
        let label = |(name, value): &(&str, &str)| format!("{name}=\"{}\"", escaped(value));
        let labels: Vec<String> = labels.iter().map(label).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        self.samples.push(format!("{labels} {value}"));
        self
    }

    /// A sample of what may be unknown: what is not known is not there.
    pub fn known(&mut self, labels: &[(&str, &str)], value: Option<impl Display>) -> &mut Family {
        match value {
            Some(value) => self.sample(labels, value),
            None => self,
        }
    }
}

/// A label's value: backslash, quotation mark and line feed are escaped.
fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_every_family_once_in_either_format() {
        let mut page = Page::new();
        page.counter("a_frames", "Frames.").sample(&[("interface", "we\"ird\\0\n")], 5);
        page.gauge("a_ratio", "A part.").sample(&[], 0.5);
        page.counter("a_frames", "Frames.").sample(&[("interface", "b"), ("queue", "1")], 6);
        page.gauge("none", "Not known.").known(&[], None::<u32>);
        assert_eq!(
            page.text(Format::OpenMetrics),
            "# HELP a_frames Frames.\n# TYPE a_frames counter\n\
             a_frames_total{interface=\"we\\\"ird\\\\0\\n\"} 5\n\
             a_frames_total{interface=\"b\",queue=\"1\"} 6\n\
             # HELP a_ratio A part.\n# TYPE a_ratio gauge\na_ratio 0.5\n# EOF\n"
        );
        let text = page.text(Format::Prometheus);
        assert!(text.starts_with("# HELP a_frames_total Frames.\n# TYPE a_frames_total counter\n"), "{text}");
        assert!(text.ends_with("a_ratio 0.5\n"), "{text}");
    }
}
