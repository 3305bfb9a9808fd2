//! The page of `rxlane explain --html`: well-formed, self-contained, bounded, and true to the report.

mod reports;

use crate::explain_html;
use crate::run::{self, Ended};
use explain::Report;

const STYLE: &str = include_str!("../../src/page/page.css");

/// Elements without an end tag (HTML Living Standard, section 13.1.2, "Void elements").
const VOID: [&str; 4] = ["meta", "wbr", "br", "hr"];

/// The page, concluding with a name out of the report.
fn render(report: &Report) -> String {
    explain_html::render(report, &[format!("The frames are those of {}.", report.nic.name)])
}

fn all() -> [(&'static str, String); 6] {
    [
        ("empty", render(&reports::empty())),
        ("usual", render(&reports::usual())),
        ("hostile", render(&reports::hostile())),
        ("crowded", render(&reports::crowded())),
        ("wide", render(&reports::wide())),
        ("unknown", render(&reports::unknown())),
    ]
}

/// What stands between `<` and `>`, in its order. Where text and values are escaped there is no other `<`, `>` or `"`.
fn tags(html: &str) -> impl Iterator<Item = &str> {
    let body = html.split_once("<html").map_or(html, |(_, body)| body);
    body.split('<').skip(1).filter_map(|rest| Some(rest.split_once('>')?.0))
}

/// Values of an attribute in any tag.
fn values<'a>(html: &'a str, attribute: &str) -> Vec<&'a str> {
    let start = format!(" {attribute}=\"");
    tags(html).filter_map(|tag| tag.split_once(&start)?.1.split('"').next()).collect()
}

/// What a reader sees: the text without tags and style.
fn text(html: &str) -> String {
    let body = html.split_once("<body>").map_or("", |(_, body)| body);
    let visible: String =
        body.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text)).collect();
    let characters = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")];
    characters.iter().fold(visible, |text, (entity, character)| text.replace(entity, character))
}

/// The charts.
fn drawings(html: &str) -> impl Iterator<Item = &str> {
    html.split("<svg").skip(1).map(|rest| rest.split("</svg>").next().unwrap_or_default())
}

/// The lengths of the bars of a class in the chart whose title has this id, in percent or in pixels.
fn lengths(html: &str, title: &str, class: &str, attribute: &str) -> Vec<f64> {
    let id = format!("id=\"{title}\"");
    let chart =
        drawings(html).find(|chart| chart.contains(&id)).unwrap_or_else(|| panic!("no chart {title}"));
    let bars = chart.split('<').filter(|tag| {
        tag.starts_with("rect ")
            && values(&format!("<{tag}"), "class").iter().any(|all| all.split(' ').any(|c| c == class))
    });
    bars.flat_map(|bar| {
        values(&format!("<{bar}"), attribute)
            .first()
            .map(|value| value.trim_end_matches('%').parse().unwrap())
    })
    .collect()
}

#[test]
fn every_page_is_well_formed_and_its_drawings_have_words() {
    for (name, page) in all() {
        assert!(page.starts_with(r#"<!DOCTYPE html><html lang="en">"#), "{name}");
        let mut open = Vec::new();
        for tag in tags(&page) {
            match tag.strip_prefix('/') {
                Some("html") => assert!(open.is_empty(), "{name}: {open:?} are open"),
                Some(end) => assert_eq!(open.pop(), Some(end), "{name}"),
                None => open.extend(tag.split(' ').next().filter(|start| !VOID.contains(start))),
            }
        }
        let mut ids = values(&page, "id");
        ids.sort_unstable();
        assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "{name}: an id stands twice: {ids:?}");
        let labels = values(&page, "aria-labelledby").into_iter().flat_map(str::split_whitespace);
        let targets = values(&page, "href").into_iter().map(|target| target.trim_start_matches('#'));
        for id in labels.chain(targets) {
            assert!(ids.contains(&id), "{name}: {id} is not there");
        }
        assert!(!page.contains("NaN") && !page.contains("inf%"), "{name}");
        // Headings: one of the first level, none skipped.
        let levels =
            tags(&page).filter_map(|tag| tag.split(' ').next()?.strip_prefix('h')?.parse::<u8>().ok());
        let levels: Vec<u8> = levels.collect();
        assert_eq!(levels.iter().filter(|level| **level == 1).count(), 1, "{name}");
        assert!(levels.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{name}: {levels:?}");
        // A drawing has words or stands next to them.
        for drawing in drawings(&page) {
            let described = ["role=\"img\"", "<title", "<desc"].iter().all(|part| drawing.contains(part));
            assert!(described || drawing.contains("aria-hidden=\"true\""), "{name}: {drawing}");
        }
    }
}

#[test]
fn nothing_is_loaded_and_nothing_runs() {
    for (name, page) in all() {
        let carriers =
            ["script", "link", "img", "iframe", "object", "embed", "base", "form", "foreignObject"];
        for tag in tags(&page) {
            let is_carrier = carriers.contains(&tag.split(' ').next().unwrap_or_default());
            // Values are in quotes, names of attributes are not.
            let names: String = tag.split('"').step_by(2).collect();
            assert!(!is_carrier && !names.contains(" on") && !names.contains(" src="), "{name}: {tag}");
        }
        assert!(values(&page, "href").iter().all(|target| target.starts_with("#source-")), "{name}");
        for style in values(&page, "style") {
            assert!(
                !["url", "expression", "/*", ";;"].iter().any(|word| style.contains(word)),
                "{name}: {style}"
            );
        }
        assert!(page.contains("default-src 'none'"), "{name}");
    }
    assert!(!STYLE.contains("url(") && !STYLE.contains("@import") && !STYLE.contains("</"));
}

#[test]
fn hostile_strings_are_displayed_and_do_nothing() {
    let page = render(&reports::hostile());
    assert!(page.contains("&lt;script&gt;alert("));
    for raw in ["<script", "<img", "onerror=a>", "\u{202e}", "\u{7}"] {
        assert!(!page.contains(raw), "{raw:?}");
    }
    let visible = text(&page);
    assert!(
        visible.contains("<script>alert('1')</script><img src=http://e.vil/x onerror=a>&\"\\u{202e}\\u{7}")
    );
    // In the command to copy, a shell takes each name as one word, and nothing in it is hidden.
    assert!(visible.contains(r"\342\200\256\007' --queues 4 --cpus 4 --json"), "{visible}");
}

#[test]
fn a_crowded_capture_gives_a_page_of_bounded_size_that_says_what_it_left_out() {
    let page = render(&reports::crowded());
    assert!(page.len() < 300_000, "{}", page.len());
    let visible = text(&page);
    for left_out in [
        "and 4,976 more with ", // stacks
        "and 4,980 more with ", // tags
        "and 4,988 more with ", // codes and protocols, refused frames
        "and 4,950 more",       // flows
        "drawn: the 256 busiest of 4,096 queues",
    ] {
        assert!(visible.contains(left_out), "{left_out}");
    }
    // What is left out and what is visible are all frames there are.
    let report = reports::crowded();
    let rest: u64 = report.stacks.iter().skip(24).map(|row| row.frames).sum();
    let rest = rest.to_string();
    let digits: String = visible
        .split_once("and 4,976 more with ")
        .and_then(|(_, after)| after.split_once('\u{a0}'))
        .map(|(number, _)| number.chars().filter(char::is_ascii_digit).collect())
        .unwrap();
    assert_eq!(digits, rest);
}

#[test]
fn sections_without_content_are_left_out() {
    let page = render(&reports::empty());
    let visible = text(&page);
    assert!(!page.contains("<svg") && visible.contains("How this was computed"), "{visible}");
    assert!(
        !visible.contains("Where the frames land") && !visible.contains("What the traffic is"),
        "{visible}"
    );
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
    let bars = |title: &str| ["even", "excess"].map(|class| lengths(&page, title, class, "width"));
    let percent = |frames: f64| 100.0 * frames / 93_512.0;
    let near = |one: f64, other: f64| (one - other).abs() < 0.01;
    // The busiest queue is the scale; the mean of 25,000 frames divides its bar.
    let [even, excess] = bars("queues-title");
    assert_eq!((even.len(), excess.len()), (4, 1));
    assert!(
        near(even[0], percent(25_000.0)) && near(excess[0], 100.0 - percent(25_000.0)),
        "{even:?} {excess:?}"
    );
    assert!(near(even[1], percent(2_210.0)), "{even:?}");
    let [even, excess] = bars("cpus-title");
    assert!(near(even[0] + excess[0], percent(25_802.0)), "{even:?} {excess:?}");
    assert!(near(even[3], percent(24_477.0)), "{even:?}");
    let visible = text(&page);
    for figure in ["3.74", "1.14", "1.03", "4.00", "93,512", "93.5\u{a0}%", "mean 25,000"] {
        assert!(visible.contains(figure), "{figure}");
    }
    // A source stands once and is cited where it decides.
    assert_eq!(values(&page, "id").iter().filter(|id| id.starts_with("source-")).count(), 3);
    let cited = ["#source-1", "#source-2", "#source-3", "#source-2", "#source-3"];
    assert_eq!(values(&page, "href"), cited);
}

#[test]
fn frames_on_an_unknown_queue_have_a_bar_of_their_own_and_many_queues_are_columns() {
    let page = render(&reports::unknown());
    let bars = |page: &str, class: &str| lengths(page, "queues-title", class, "width");
    assert_eq!(bars(&page, "unknown"), [100.0]);
    // The mean is that of the frames whose queue is known.
    assert_eq!(bars(&page, "even")[0], 5.488);
    let visible = text(&page);
    assert!(visible.contains("82,000") && visible.contains("queue not known to the profile"));
    assert!(lengths(&page, "cpus-title", "unknown", "width").is_empty());
    // Where no queue is known, none looks idle.
    let mut report = reports::unknown();
    (report.queues, report.imbalance) = (Vec::new(), Default::default());
    report.nic.unplaced = report.source.frames;
    let page = render(&report);
    assert_eq!(bars(&page, "unknown"), [100.0]);
    assert!(bars(&page, "even").is_empty() && bars(&page, "track").is_empty());
    assert!(text(&page).contains("unknown of 4"));
    let wide = render(&reports::wide());
    assert_eq!(lengths(&wide, "queues-title", "even", "height").len(), 64);
    assert!(drawings(&wide).all(|chart| chart.matches("<text").count() <= 6));
    assert!(text(&wide).contains("64 of 128 queues get no frame"));
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
        assert!(!page.contains("<script"));
        text(&page)
    };
    let visible = page(name);
    for part in [name, "eth/pppoe/ipv4/tcp", "the parser stops at the PPPoE header"] {
        assert!(visible.contains(part), "{part}: {visible}");
    }
    // Standard input keeps its name and its argument.
    let visible = page("-");
    for part in ["Standard input", "rxlane explain - --nic i210 --queues 4 --cpus 4 --json"] {
        assert!(visible.contains(part), "{part}: {visible}");
    }
}
