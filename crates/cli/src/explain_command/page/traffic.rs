//! What the traffic is: encapsulation stacks and how they are hashed, tags, PPPoE, fragments.

use crate::page::figures::{bytes, share};
use crate::page::table::inline_bar;
use crate::page::table::{by_frames, first, frames_by, left_out};
use explain::Report;
use explain::report::StackRow;
use format::{Share, printable_up_to, thousands};
use maud::{Markup, html};
use rss::HashType;

pub const STACKS: usize = 24;

pub const TAGS: usize = 20;

pub const CODES: usize = 12;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    Ports,
    Addresses,
    Nothing,
    Unknown,
}

impl Reach {
    const ALL: [Reach; 4] = [Reach::Ports, Reach::Addresses, Reach::Nothing, Reach::Unknown];

    fn of(hash_type: &str) -> Reach {
        match hash_type {
            "none" => Reach::Nothing,
            name => match HashType::ALL.into_iter().find(|known| known.name() == name) {
                Some(known) if known.has_ports() => Reach::Ports,
                Some(_) => Reach::Addresses,
                None => Reach::Unknown,
            },
        }
    }

    const fn colour(self) -> &'static str {
        match self {
            Reach::Ports => "even",
            Reach::Addresses => "partly",
            Reach::Nothing => "excess",
            Reach::Unknown => "unknown",
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Reach::Ports => "hashed over addresses and ports",
            Reach::Addresses => "over addresses only",
            Reach::Nothing => "not hashed",
            Reach::Unknown => "unknown",
        }
    }

    fn frames(self, row: &StackRow) -> u64 {
        let of_reach = |(name, _): &(&String, &u64)| Reach::of(name) == self;
        row.hash_types.iter().filter(of_reach).map(|(_, frames)| frames).sum()
    }
}

pub fn stacks(report: &Report) -> Markup {
    let total = report.source.frames;
    let (listed, rest) = first(&report.stacks, STACKS);
    let sources = sources(listed);
    html! {
        @if !listed.is_empty() {
            section {
                h2 { "What the traffic is" }
                p.intro { "Frames by encapsulation, outermost header first, and what the "
                    (printable_up_to(&report.nic.name, 80)) " hashes of them." }
                ul.legend {
                    @for reach in Reach::ALL {
                        @let frames: u64 = report.stacks.iter().map(|row| reach.frames(row)).sum();
                        @if frames > 0 {
                            li { span class={ "key " (reach.colour()) } {} (reach.words()) " "
                                b { (share(frames, total)) } }
                        }
                    }
                }
                table.stacks {
                    thead { tr {
                        th scope="col" { "encapsulation and hash type" }
                        th.figure scope="col" { "frames" }
                        th.figure scope="col" { "share" }
                        th.figure scope="col" { "bytes" }
                    } }
                    tbody { @for row in listed { (stack(row, total, &sources)) } }
                }
                (left_out(rest.len(), rest.iter().map(|row| row.frames).sum(), total))
                @if !sources.is_empty() {
                    h3 { "Sources" }
                    ol.sources {
                        @for (at, source) in sources.iter().enumerate() {
                            li id={ "source-" (at + 1) } { (printable_up_to(source, 600)) }
                        }
                    }
                }
            }
        }
    }
}

fn stack(row: &StackRow, total: u64, sources: &[&str]) -> Markup {
    let segments = Reach::ALL.map(|reach| (reach.colour(), Share::of(reach.frames(row), total).percent()));
    let numbers: Vec<usize> = row
        .sources
        .iter()
        .filter_map(|source| sources.iter().position(|known| known == source))
        .map(|at| at + 1)
        .collect();
    html! {
        tr {
            th scope="row" {
                span.stack { (words(&printable_up_to(&row.stack, 300))) }
                (inline_bar(&segments))
                p.why {
                    span class={ "type " (Reach::of(&row.hash_type).colour()) } { (printable_up_to(&row.hash_type, 40)) }
                    " " (printable_up_to(&row.why, 400))
                    @for number in numbers {
                        " " a.ref href={ "#source-" (number) } aria-label={ "source " (number) } {
                            "[" (number) "]"
                        }
                    }
                    @if row.hash_types.len() > 1 {
                        span.mix {
                            "by type: "
                            @for (at, (name, frames)) in by_frames(&row.hash_types).into_iter().enumerate() {
                                @if at > 0 { ", " }
                                (printable_up_to(name, 40)) " " (thousands(frames))
                            }
                        }
                    }
                }
            }
            td.figure data-label="frames" { span { (thousands(row.frames)) } }
            td.figure data-label="share" { span { (share(row.frames, total)) } }
            td.figure data-label="bytes" { span { (bytes(row.bytes)) } }
        }
    }
}

/// The words of a stack, which may break after each of them.
fn words(stack: &str) -> Markup {
    html! {
        @for (at, word) in stack.split('/').enumerate() {
            @if at > 0 { span.slash { "/" } wbr; }
            (word)
        }
    }
}

/// Each source once, in the order in which the rows cite them.
fn sources(rows: &[StackRow]) -> Vec<&str> {
    let mut sources = Vec::new();
    for source in rows.iter().flat_map(|row| &row.sources) {
        if !sources.contains(&source.as_str()) {
            sources.push(source.as_str());
        }
    }
    sources
}

/// The section on VLAN tags; none where no frame has a tag.
pub fn tags(report: &Report) -> Markup {
    let rows: Vec<(Markup, u64)> = report
        .tags
        .iter()
        .map(|row| (html! { span.stack { (printable_up_to(&row.tags, 90)) } }, row.frames))
        .collect();
    let tagged = report.tags.iter().any(|row| row.tags != "untagged");
    let stacks = report.tags.iter().filter(|row| row.tags != "untagged").count();
    html! {
        @if tagged {
            section {
                h2 { "VLAN tags" }
                p.intro { (thousands(stacks as u64)) " distinct tag " (if stacks == 1 { "stack" } else { "stacks" })
                    ", TPID/VID, outermost first." }
                (frames_by("tags", &rows, report.source.frames, TAGS))
            }
        }
    }
}

/// The section on PPPoE; none where there is none.
pub fn pppoe(report: &Report) -> Markup {
    let pppoe = &report.pppoe;
    let codes: Vec<(Markup, u64)> = by_frames(&pppoe.codes)
        .into_iter()
        .map(|(code, frames)| (html! { (printable_up_to(code, 40)) }, frames))
        .collect();
    let protocols: Vec<(Markup, u64)> = by_frames(&pppoe.ppp)
        .into_iter()
        .map(|(protocol, frames)| {
            let name = ppp_name(protocol);
            let label = html! {
                span.stack { (printable_up_to(protocol, 40)) }
                @if let Some(name) = name { " " (name) }
            };
            (label, frames)
        })
        .collect();
    let total = pppoe.codes.values().sum();
    html! {
        @if !codes.is_empty() {
            section {
                h2 { "PPPoE" }
                p.intro {
                    @if pppoe.sessions == 0 {
                        "No session, discovery only."
                    } @else {
                        (thousands(pppoe.sessions as u64)) " distinct "
                        (if pppoe.sessions == 1 { "session" } else { "sessions" })
                        ", distinguished by session id, stations and tags."
                    }
                }
                (frames_by("code", &codes, total, CODES))
                @if !protocols.is_empty() {
                    (frames_by("PPP protocol", &protocols, total, CODES))
                }
            }
        }
    }
}

pub fn flows(report: &Report) -> Markup {
    let (flows, fragments) = (&report.flows, &report.fragments);
    let fragments: Vec<(Markup, u64)> = [
        ("IPv4, first", fragments.ipv4_first),
        ("IPv4, later", fragments.ipv4_later),
        ("IPv6, first", fragments.ipv6_first),
        ("IPv6, later", fragments.ipv6_later),
    ]
    .into_iter()
    .filter(|(_, frames)| *frames > 0)
    .map(|(name, frames)| (html! { (name) }, frames))
    .collect();
    let extensions: Vec<(Markup, u64)> = by_frames(report.extension_headers.iter().map(|(k, v)| (*k, v)))
        .into_iter()
        .map(|(name, headers)| (html! { (name) }, headers))
        .collect();
    let total = report.source.frames;
    html! {
        @if flows.unidirectional > 0 || !fragments.is_empty() || !extensions.is_empty() {
            section {
                h2 { "Flows and fragments" }
                dl.numbers {
                    div { dt { "flows, each direction" } dd { (thousands(flows.unidirectional)) } }
                    div { dt { "flows, both as one" } dd { (thousands(flows.bidirectional)) } }
                }
                @if !fragments.is_empty() {
                    (frames_by("IP fragments", &fragments, total, fragments.len()))
                }
                @if !extensions.is_empty() {
                    table.plain {
                        thead { tr {
                            th scope="col" { "extension headers" }
                            th.figure scope="col" { "occurrences" }
                        } }
                        tbody { @for (name, headers) in &extensions {
                            tr { th scope="row" { (name) } td.figure { (thousands(*headers)) } }
                        } }
                    }
                }
            }
        }
    }
}

/// Names of the PPP protocols that an access line carries (IANA, "PPP DLL Protocol Numbers").
fn ppp_name(number: &str) -> Option<&'static str> {
    Some(match number {
        "0x0021" => "IPv4",
        "0x0057" => "IPv6",
        "0x00fd" => "compressed datagram",
        "0x0281" => "MPLS unicast",
        "0x8021" => "IPCP",
        "0x8057" => "IPV6CP",
        "0x80fd" => "CCP",
        "0x8281" => "MPLSCP",
        "0xc021" => "LCP",
        "0xc023" => "PAP",
        "0xc025" => "LQR",
        "0xc223" => "CHAP",
        "0xc227" => "EAP",
        _ => return None,
    })
}
