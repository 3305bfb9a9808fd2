//! The page that `--html FILE` writes: what differs most, a chart for each metric, every figure.

use super::figures::Scale;
use super::text::{machine, state};
use crate::bench_command::prose;
use crate::page;
use crate::page::table::{rounded, table, words};
use bench::scenario::pps::interface::ANYBODY;
use bench::scenario::report::{Cell, Metric, Report};
use bench::scenario::spread::Spread;
use format::printable_up_to;
use maud::{Markup, html};

/// Longest text of a machine or an error that is displayed.
const MOST: usize = 500;
/// Longest sentence.
const SENTENCE: usize = 2000;
/// Sentences before everything else.
const LEAD: usize = 4;

pub fn render(report: &Report) -> String {
    let body = html! {
        (header(report))
        main {
            (page::lead(&lead(report)))
            @for metric in report.measured() { (chart(report, metric)) }
            (sentences(report))
            (facts(report))
            (raw(report))
            (missing(report))
            (method(report))
        }
    };
    page::document(&format!("{} – rxlane bench {}", report.title, report.scenario), &report.schema, body)
}

fn lead(report: &Report) -> Vec<String> {
    prose::clearest(report, LEAD).into_iter().map(str::to_owned).collect()
}

fn sentences(report: &Report) -> Markup {
    html! {
        @if prose::sentences(report).next().is_some() {
            section {
                h2 { "Cells compared" }
                p.intro { "By ratios within a round: median, least and greatest. Less than 1.3 times is a tie." }
                ul.sentences { @for sentence in prose::sentences(report) { li { (printable_up_to(sentence, SENTENCE)) } } }
            }
        }
    }
}

fn header(report: &Report) -> Markup {
    html! {
        header {
            p.overline { "rxlane bench " (report.scenario) }
            h1 { (report.title) }
            p.device { (printable_up_to(&machine(&report.machine), MOST)) }
            p.device { (state(&report.machine)) }
            dl.facts {
                div { dt { "begun" } dd { (report.began) } }
                div { dt { "rounds" } dd { (report.rounds) @if !report.complete { ", not all whole" } } }
                @for (name, value) in &report.parameters {
                    div { dt { (printable_up_to(name, MOST)) } dd { (printable_up_to(value, MOST)) } }
                }
            }
            @if !report.warnings.is_empty() {
                ul.files { @for warning in &report.warnings { li { "Warning: " (printable_up_to(warning, MOST)) } } }
            }
        }
    }
}

/// A bar a cell up to its median, and a line from the least to the greatest.
fn chart(report: &Report, metric: &Metric) -> Markup {
    let scale = Scale::of_metric(report, metric);
    let spread = |cell: &Cell| cell.figures.get(&metric.name).and_then(|figures| figures.spread);
    let greatest = report.cells.iter().filter_map(spread).map(|spread| spread.most).fold(0.0, f64::max);
    let better = match metric.more_is_better {
        Some(true) => "; more is better",
        Some(false) => "; less is better",
        None => "",
    };
    html! {
        section {
            h2 { (metric.title) ", " (scale.unit) }
            p.intro {
                @if report.rounds == 1 { "Of one round" } @else { "Median; the line reaches from the least to the greatest round" }
                (better) "."
            }
            table.bars {
                thead { tr {
                    th scope="col" { "cell" }
                    th.figure scope="col" { "median" }
                    th.figure scope="col" { "least–greatest" }
                } }
                tbody {
                    @for cell in &report.cells {
                        tr {
                            th scope="row" { (report.words(&cell.levels)) (bar(spread(cell), greatest)) }
                            @match spread(cell) {
                                Some(spread) => {
                                    td.figure { (scale.figure(spread.median)) }
                                    td.figure {
                                        @if spread.count > 1 { (scale.figure(spread.least)) "–" (scale.figure(spread.most)) }
                                    }
                                }
                                None => { td.figure { "–" } td.figure { "–" } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn bar(spread: Option<Spread>, greatest: f64) -> Markup {
    let place = |value: f64| {
        let percent = if greatest > 0.0 { (100.0 * value / greatest).clamp(0.0, 100.0) } else { 0.0 };
        format!("{}%", rounded(percent))
    };
    html! {
        svg.spread aria-hidden="true" height="10" width="100%" {
            rect.track x="0" y="0" width="100%" height="10" {}
            @if let Some(Spread { median, least, most, count }) = spread {
                rect.partly x="0" y="0" width=(place(median)) height="10" {}
                @if count > 1 { line.range x1=(place(least)) x2=(place(most)) y1="5" y2="5" {} }
            }
        }
    }
}

fn facts(report: &Report) -> Markup {
    let row = |fact: &bench::scenario::report::Fact| {
        vec![
            html! { (printable_up_to(&fact.question, MOST)) },
            html! { (printable_up_to(&fact.answer, MOST)) },
        ]
    };
    html! {
        @if !report.facts.is_empty() {
            section {
                h2 { "The same in every round" }
                (table(&[words("question"), words("answer")], report.facts.iter().map(row)))
            }
        }
    }
}

fn raw(report: &Report) -> Markup {
    html! {
        section {
            h2 { "Every figure" }
            p.intro { "One a round, from the first." }
            @for metric in report.measured() {
                @let scale = Scale::of_metric(report, metric);
                h3 { (metric.title) ", " (scale.unit) }
                (table(&[words("cell"), words("rounds")], report.cells.iter().map(|cell| {
                    let raw = cell.figures.get(&metric.name).map(|figures| figures.raw.as_slice());
                    let figures = raw.unwrap_or_default().iter().map(|figure| {
                        figure.map_or_else(|| "–".to_owned(), |figure| scale.figure(figure))
                    });
                    let figures = figures.collect::<Vec<_>>().join(" · ");
                    vec![html! { (report.words(&cell.levels)) }, html! { (figures) }]
                })))
            }
        }
    }
}

fn missing(report: &Report) -> Markup {
    let failures =
        report.cells.iter().flat_map(|cell| cell.failures.iter().map(move |failure| (cell, failure)));
    let failures: Vec<_> = failures.take(100).collect();
    html! {
        @if !report.left_out.is_empty() || !failures.is_empty() {
            section {
                h2 { "Not measured" }
                ul.problems {
                    @for left in &report.left_out {
                        li { (report.words(&left.levels)) ": " (printable_up_to(&left.why, MOST)) }
                    }
                    @for (cell, failure) in &failures {
                        li { (report.words(&cell.levels)) ", round " (failure.round + 1) ": " (printable_up_to(&failure.why, MOST)) }
                    }
                }
            }
        }
    }
}

fn options(report: &Report) -> String {
    let mut options = format!(" --rounds {}", report.rounds);
    for (name, value) in &report.parameters {
        match (name.as_str(), report.scenario.as_str()) {
            ("seconds" | "flows", _) | ("payload", "pps") => options.push_str(&format!(" --{name} {value}")),
            _ => {
                let only = name.strip_prefix("only ").map(|factor| format!(" --level {factor}={value}"));
                options.extend(only);
            }
        }
    }
    options
}

fn method(report: &Report) -> Markup {
    let interface = report.parameters.get("interface");
    let cables = report.parameters.get("cables");
    let mut again = interface.map(|interface| format!(" --interface {interface}")).unwrap_or_default();
    let from = report.parameters.get("from").filter(|from| *from != ANYBODY);
    again.extend(from.map(|from| format!(" --from {from}")));
    let vary = report.parameters.get("vary").into_iter().flat_map(|vary| vary.split(' '));
    again.extend(vary.map(|group| format!(" --factor {group}")));
    again.push_str(&options(report));
    again.extend(cables.iter().flat_map(|cables| cables.split(',')).map(|cable| format!(" --cable {cable}")));
    html! {
        section {
            h2 { "How" }
            p.intro {
                @match interface {
                    Some(_) => {
                        "Datagrams of another host, received by a NIC of this one, whose settings were changed for one \
                         cell at a time and restored. "
                    }
                    None if cables.is_some() => {
                        "In network namespaces of one machine, joined by cables between its NICs, and by pairs of virtual \
                         Ethernet devices where there was none. "
                    }
                    None => "In network namespaces of one machine, joined by pairs of virtual Ethernet devices. ",
                }
                "Every cell was measured once a \
                 round, each round beginning with another cell. Ratios are taken within a round; a median less than 1.3 times away \
                 is a tie. The same again: " code { "sudo rxlane bench " (report.scenario) (printable_up_to(&again, MOST)) } "."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench::scenario::verdict::{Outcome, Verdict};

    #[test]
    fn a_page_has_every_sentence_and_the_command() {
        let outcome = Outcome::Unclear;
        let verdict = Verdict { outcome, text: "unclear <9>".to_owned(), ..Verdict::default() };
        let report = Report {
            scenario: "steer".to_owned(),
            rounds: 3,
            parameters: [("only way".to_owned(), "off".to_owned())].into(),
            verdicts: vec![verdict],
            remarks: vec!["A remark.".to_owned()],
            ..Report::default()
        };
        let page = render(&report);
        for expected in [
            "<li>unclear &lt;9&gt;</li>",
            "<li>A remark.</li>",
            "rxlane bench steer --rounds 3 --level way=off",
        ] {
            assert!(page.contains(expected), "{expected}: {page}");
        }
    }
}
