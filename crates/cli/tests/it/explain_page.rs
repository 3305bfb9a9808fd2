//! The page of `rxlane explain --html`: well-formed, self-contained, bounded, and true to the report.

mod markup;
mod reports;

use crate::explain_html;
use crate::run::{self, Ended};
use explain::Report;
use markup::{Element, elements, text};

const STYLE: &str = include_str!("../../src/page/page.css");

/// The page, concluding with a name out of the report.
fn render(report: &Report) -> String {
    explain_html::render(report, &[format!("The frames are those of {}.", report.nic.name)])
}

fn all() -> [(&'static str, Report); 6] {
    [
        ("empty", reports::empty()),
        ("usual", reports::usual()),
        ("hostile", reports::hostile()),
        ("crowded", reports::crowded()),
        ("wide", reports::wide()),
        ("unknown", reports::unknown()),
    ]
}

/// The elements inside the chart whose title has this id.
fn chart<'a>(elements: &'a [Element], id: &str) -> Vec<&'a Element> {
    let labelled = |element: &&Element| {
        element.name == "svg" && element.attribute("aria-labelledby").is_some_and(|ids| ids.contains(id))
    };
    let chart = elements.iter().find(labelled).unwrap_or_else(|| panic!("no chart {id}"));
    elements.iter().filter(|element| chart.holds(element)).collect()
}

/// The lengths of a chart's bars of a class, in percent or in pixels.
fn lengths(chart: &[&Element], class: &str, attribute: &str) -> Vec<f64> {
    let bars = chart.iter().filter(|element| element.name == "rect" && element.has_class(class));
    bars.map(|bar| bar.attribute(attribute).unwrap().trim_end_matches('%').parse().unwrap()).collect()
}

#[test]
fn every_page_is_well_formed() {
    for (name, report) in all() {
        let page = render(&report);
        assert!(page.starts_with(r#"<!DOCTYPE html><html lang="en">"#), "{name}");
        let elements = elements(&page).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut ids: Vec<&str> = elements.iter().filter_map(|element| element.attribute("id")).collect();
        ids.sort_unstable();
        assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "{name}: an id stands twice: {ids:?}");
        let labels = elements.iter().filter_map(|element| element.attribute("aria-labelledby"));
        for label in labels.flat_map(str::split_whitespace) {
            assert!(ids.contains(&label), "{name}: {label} is not there");
        }
        for target in elements.iter().filter_map(|element| element.attribute("href")) {
            assert!(ids.contains(&target.trim_start_matches('#')), "{name}: {target} leads nowhere");
        }
        assert!(!page.contains("NaN") && !page.contains("inf%"), "{name}");
        // Headings: one of the first level, none skipped.
        let levels = elements.iter().filter_map(|element| element.name.strip_prefix('h')?.parse::<u8>().ok());
        let levels: Vec<u8> = levels.collect();
        assert_eq!(levels.iter().filter(|level| **level == 1).count(), 1, "{name}");
        assert!(levels.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{name}: {levels:?}");
        // A drawing has words or stands beside them.
        for drawing in elements.iter().filter(|element| element.name == "svg") {
            let inside = |name| elements.iter().any(|element| element.name == name && drawing.holds(element));
            let described = drawing.attribute("role") == Some("img") && inside("title") && inside("desc");
            assert!(described || drawing.attribute("aria-hidden") == Some("true"), "{name}: {drawing:?}");
        }
    }
}

#[test]
fn nothing_is_loaded_and_nothing_runs() {
    for (name, report) in all() {
        let page = render(&report);
        for element in elements(&page).unwrap() {
            let carrier =
                ["script", "link", "img", "iframe", "object", "embed", "base", "form", "foreignObject"];
            assert!(!carrier.contains(&element.name.as_str()), "{name}: {element:?}");
            for (attribute, value) in &element.attributes {
                assert!(!attribute.starts_with("on") && attribute != "src", "{name}: {element:?}");
                if attribute == "href" {
                    assert!(value.starts_with("#source-"), "{name}: {element:?}");
                }
                if attribute == "style" {
                    let dangerous = ["url", "expression", "/*", ";;"];
                    assert!(!dangerous.iter().any(|word| value.contains(word)), "{name}: {element:?}");
                }
            }
        }
        assert!(page.contains("default-src 'none'"), "{name}");
    }
    assert!(!STYLE.contains("url(") && !STYLE.contains("@import") && !STYLE.contains("</"));
}

#[test]
fn hostile_strings_are_shown_and_do_nothing() {
    let page = render(&reports::hostile());
    assert!(page.contains("&lt;script&gt;alert("));
    for raw in ["<script", "<img", "onerror=a>", "\u{202e}", "\u{7}"] {
        assert!(!page.contains(raw), "{raw:?}");
    }
    let shown = text(&page);
    assert!(
        shown.contains("<script>alert('1')</script><img src=http://e.vil/x onerror=a>&\"\\u{202e}\\u{7}")
    );
    // In the command to copy, a shell takes each name as one word, and nothing in it is hidden.
    assert!(shown.contains(r"\342\200\256\007' --queues 4 --cpus 4 --json"), "{shown}");
}

#[test]
fn a_crowded_capture_gives_a_page_of_bounded_size_that_says_what_it_left_out() {
    let page = render(&reports::crowded());
    assert!(page.len() < 300_000, "{}", page.len());
    let shown = text(&page);
    for left_out in [
        "and 4,976 more with ", // stacks
        "and 4,980 more with ", // tags
        "and 4,988 more with ", // codes and protocols, refused frames
        "and 4,950 more",       // flows
        "drawn: the 256 busiest of 4,096 queues",
    ] {
        assert!(shown.contains(left_out), "{left_out}");
    }
    // What is left out and what is shown are all frames there are.
    let report = reports::crowded();
    let rest: u64 = report.stacks.iter().skip(24).map(|row| row.frames).sum();
    let rest = rest.to_string();
    let digits: String = shown
        .split_once("and 4,976 more with ")
        .and_then(|(_, after)| after.split_once('\u{a0}'))
        .map(|(number, _)| number.chars().filter(char::is_ascii_digit).collect())
        .unwrap();
    assert_eq!(digits, rest);
}

#[test]
fn sections_without_content_are_left_out() {
    let page = render(&reports::empty());
    let shown = text(&page);
    assert!(!page.contains("<svg") && shown.contains("How this was computed"), "{shown}");
    assert!(!shown.contains("Where the frames land") && !shown.contains("What the traffic is"), "{shown}");
    let usual = render(&reports::usual());
    for heading in [
        "VLAN tags",
        "Flows and fragments",
        "Bad frames",
        "Frames too long for the device",
        "Largest flows",
        "Problems of the files",
        "PPPoE",
    ] {
        let heading = format!("<h2>{heading}</h2>");
        assert!(usual.contains(&heading) && !page.contains(&heading), "{heading}");
    }
}

#[test]
fn both_charts_share_one_scale() {
    let page = render(&reports::usual());
    let elements = elements(&page).unwrap();
    let queues = chart(&elements, "queues-title");
    let (even, excess) = (lengths(&queues, "even", "width"), lengths(&queues, "excess", "width"));
    // The busiest queue is the scale; the mean of 25,000 frames divides its bar.
    let mean = 100.0 * 25_000.0 / 93_512.0;
    assert!(
        (even[0] - mean).abs() < 0.01 && (excess[0] - (100.0 - mean)).abs() < 0.01,
        "{even:?} {excess:?}"
    );
    assert!((even[1] - 100.0 * 2_210.0 / 93_512.0).abs() < 0.01, "{even:?}");
    assert_eq!((even.len(), excess.len()), (4, 1));
    let cpus = chart(&elements, "cpus-title");
    let (even, excess) = (lengths(&cpus, "even", "width"), lengths(&cpus, "excess", "width"));
    assert!((even[0] + excess[0] - 100.0 * 25_802.0 / 93_512.0).abs() < 0.01, "{even:?} {excess:?}");
    assert!((even[3] - 100.0 * 24_477.0 / 93_512.0).abs() < 0.01, "{even:?}");
    let shown = text(&page);
    for figure in ["3.74", "1.14", "1.03", "4.00", "93,512", "93.5\u{a0}%", "mean 25,000"] {
        assert!(shown.contains(figure), "{figure}");
    }
}

#[test]
fn frames_on_an_unknown_queue_have_a_bar_of_their_own() {
    let page = render(&reports::unknown());
    let elements = elements(&page).unwrap();
    let queues = chart(&elements, "queues-title");
    assert_eq!(lengths(&queues, "unknown", "width"), [100.0]);
    // The mean is that of the frames whose queue is known.
    assert_eq!(lengths(&queues, "even", "width")[0], 5.488);
    let shown = text(&page);
    assert!(shown.contains("82,000") && shown.contains("queue not known to the profile"));
    assert!(lengths(&chart(&elements, "cpus-title"), "unknown", "width").is_empty());
    // Where no queue is known, none looks idle.
    let mut report = reports::unknown();
    (report.queues, report.imbalance) = (Vec::new(), Default::default());
    report.nic.unplaced = report.source.frames;
    let page = render(&report);
    let elements = markup::elements(&page).unwrap();
    let queues = chart(&elements, "queues-title");
    assert_eq!(lengths(&queues, "unknown", "width"), [100.0]);
    assert!(lengths(&queues, "even", "width").is_empty() && lengths(&queues, "track", "width").is_empty());
    assert!(text(&page).contains("unknown of 4"));
}

#[test]
fn many_queues_become_columns() {
    let page = render(&reports::wide());
    let elements = elements(&page).unwrap();
    let queues = chart(&elements, "queues-title");
    assert_eq!(lengths(&queues, "even", "height").len(), 64);
    let labels = queues.iter().filter(|element| element.name == "text").count();
    assert!(labels <= 6, "{labels}");
    assert!(text(&page).contains("64 of 128 queues get no frame"));
}

#[test]
fn a_source_stands_once_and_is_cited_where_it_decides() {
    let page = render(&reports::usual());
    let elements = elements(&page).unwrap();
    let sources = elements.iter().filter(|e| e.attribute("id").is_some_and(|id| id.starts_with("source-")));
    assert_eq!(sources.count(), 3);
    let cited: Vec<&str> = elements.iter().filter_map(|element| element.attribute("href")).collect();
    assert_eq!(cited, ["#source-1", "#source-2", "#source-3", "#source-2", "#source-3"]);
}

/// WCAG 2.2, sections 1.4.3 (text 4.5:1) and 1.4.11 (what carries meaning in a drawing 3:1).
#[test]
fn contrast_is_sufficient_in_both_themes() {
    let themes: Vec<&str> =
        STYLE.split(":root {").skip(1).filter_map(|rest| rest.split('}').next()).collect();
    assert_eq!(themes.len(), 2);
    for theme in themes {
        let colour = |name: &str| {
            let value = theme.split_once(&format!("--{name}: #")).unwrap().1;
            let rgb = u32::from_str_radix(&value[..6], 16).unwrap();
            let linear = |shift: u32| {
                let value = f64::from(rgb >> shift & 0xff) / 255.0;
                if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
            };
            0.2126 * linear(16) + 0.7152 * linear(8) + 0.0722 * linear(0)
        };
        let contrast = |one: &str, other: &str| {
            let (one, other) = (colour(one), colour(other));
            (one.max(other) + 0.05) / (one.min(other) + 0.05)
        };
        let texts = ["ink", "quiet", "link"].map(|name| (name, 4.5));
        let drawn = ["even", "partly", "excess", "unknown", "plain"].map(|name| (name, 3.0));
        for (name, least) in texts.into_iter().chain(drawn) {
            for ground in ["paper", "track"] {
                let ratio = contrast(name, ground);
                assert!(ratio >= least, "{name} on {ground}: {ratio:.2}");
            }
        }
    }
}

#[test]
fn the_command_writes_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str], input: Vec<u8>| {
        let mut command = run::rxlane();
        let output = command.current_dir(&folder).args(arguments).write_stdin(input).output();
        output.is(&arguments, 0, "");
        output.stdout
    };
    let name = "<script>alert(1)<&script>.pcap";
    let capture =
        run(&["gen", "--scenario", "pppoe", "--flows", "50", "--frames", "500", "-o", "-"], Vec::new());
    std::fs::write(folder.path().join(name), &capture).unwrap();
    let page = |input: &str| {
        run(&["explain", input, "--nic", "i210", "--html", "page.html"], capture.clone());
        let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
        elements(&page).unwrap();
        assert!(!page.contains("<script"));
        text(&page)
    };
    let shown = page(name);
    for part in [name, "eth/pppoe/ipv4/tcp", "the parser stops at the PPPoE header"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // Standard input keeps its name and its argument.
    let shown = page("-");
    for part in ["Standard input", "rxlane explain - --nic i210 --queues 4 --cpus 4 --json"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}
