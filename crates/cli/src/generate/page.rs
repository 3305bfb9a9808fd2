//! One man page: clap_mangen's sections, and those that it does not write or writes without the values.

use clap::{Arg, Command};
use clap_mangen::Man;
use std::fmt::Write;
use std::io;

const EXIT_STATUS: [(&str, &str); 4] = [
    ("0", "Success."),
    ("1", "Negative result, or a capture is damaged: everything before the damage was counted."),
    ("2", "Wrong usage or input."),
    ("3", "The environment lacks something: a privilege, a kernel feature."),
];

/// The page of a built `command`, as roff. Errors: none but those of clap_mangen, which writes to memory.
pub fn render(command: &Command, version: &str) -> io::Result<String> {
    let man = Man::new(command.clone());
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    // Option lists read badly when they are justified and hyphenated.
    let title =
        format!(".TH \"{}\" \"1\" \"\" \"rxlane {version}\" \"rxlane manual\"\n.nh\n.ad l\n", escaped(name));
    let mut page = title.into_bytes();
    man.render_name_section(&mut page)?;
    page.extend(synopsis(command).into_bytes());
    man.render_description_section(&mut page)?;
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        man.render_options_section(&mut page)?;
    }
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (help, codes) = apart(&help);
    page.extend(examples(&help).into_bytes());
    page.extend(exit_status(codes).into_bytes());
    page.extend(see_also(command).into_bytes());
    Ok(ascii(&String::from_utf8_lossy(&page)))
}

/// The same text for a troff that reads ASCII alone.
fn ascii(page: &str) -> String {
    let letter = |letter: char| match letter.is_ascii() {
        true => letter.to_string(),
        false => format!("\\[u{:04X}]", u32::from(letter)),
    };
    page.chars().map(letter).collect()
}

/// Text in which nothing is a request or an escape.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

fn synopsis(command: &Command) -> String {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let mut text = format!(".SH SYNOPSIS\n\\fB{}\\fR", escaped(name));
    let visible = || command.get_arguments().filter(|argument| !argument.is_hide_set());
    for argument in visible().filter(|argument| !argument.is_positional()) {
        let _ = write!(text, "\n{}", bracketed(argument, &option(argument)));
    }
    for argument in visible().filter(|argument| argument.is_positional()) {
        let many = argument.get_num_args().is_some_and(|range| range.max_values() > 1);
        let value = format!("{}{}", values(argument), if many { "..." } else { "" });
        let _ = write!(text, "\n{}", bracketed(argument, &value));
    }
    if command.has_subcommands() {
        text.push_str("\n\\fICOMMAND\\fR");
    }
    text + "\n"
}

fn bracketed(argument: &Arg, text: &str) -> String {
    if argument.is_required_set() { text.to_owned() } else { format!("[{text}]") }
}

/// `-o|--output FILE`, on one line.
fn option(argument: &Arg) -> String {
    let short = argument.get_short().map(|letter| format!("-{letter}"));
    let long = argument.get_long().map(|name| format!("--{name}"));
    let names: Vec<String> =
        short.into_iter().chain(long).map(|name| format!("\\fB{}\\fR", escaped(&name))).collect();
    let range = argument.get_num_args().filter(|range| range.takes_values());
    let value = match (range, argument.is_require_equals_set()) {
        (None, _) => String::new(),
        (Some(_), false) => format!("\\ {}", values(argument)),
        (Some(range), true) if range.min_values() == 0 => format!("[={}]", values(argument)),
        (Some(_), true) => format!("={}", values(argument)),
    };
    format!("{}{value}", names.join("|"))
}

fn values(argument: &Arg) -> String {
    let names: Vec<String> = match argument.get_value_names() {
        Some(names) => names.iter().map(|name| escaped(name)).collect(),
        None => vec![escaped(argument.get_id().as_str())],
    };
    format!("\\fI{}\\fR", names.join("\\ "))
}

/// What stands below the options in the help: the examples as they are, the rest as notes.
fn examples(help: &str) -> String {
    let is_example = |line: &&str| line.starts_with("  ");
    let lines: Vec<&str> = help.lines().filter(is_example).collect();
    let mut text = String::new();
    if !lines.is_empty() {
        text.push_str(".SH EXAMPLES\n.nf\n");
        lines.iter().for_each(|line| text.push_str(&format!("{}\n", escaped(line.trim()))));
        text.push_str(".fi\n");
    }
    let notes = help.lines().filter(|line| !is_example(line) && *line != "Examples:");
    let notes: Vec<&str> = notes.skip_while(|line| line.trim().is_empty()).collect();
    if notes.iter().any(|line| !line.trim().is_empty()) {
        text.push_str(".SH NOTES\n");
        for line in notes {
            text.push_str(&if line.trim().is_empty() {
                ".PP\n".to_owned()
            } else {
                format!("{}\n", escaped(line))
            });
        }
    }
    text
}

/// A command's own exit codes: each with what it means.
type Codes = Vec<(String, String)>;

/// The text below the options without the sentences that begin with `Exit codes:`, and what these say. Codes that stand in another
/// form stay in the text, next to those of every command.
fn apart(help: &str) -> (String, Codes) {
    const LEAD: &str = "Exit codes: ";
    let Some((before, rest)) = help.split_once(LEAD) else { return (help.to_owned(), Codes::new()) };
    let end = rest.find("\n\n").unwrap_or(rest.len());
    let (text, behind) = rest.split_at_checked(end).unwrap_or((rest, ""));
    let codes = codes(&text.replace('\n', " "));
    if codes.is_empty() {
        (help.to_owned(), codes)
    } else {
        (format!("{}{behind}", before.trim_end()), codes)
    }
}

/// Of `0 done, 1 there is none, 3 it requires root.`: a number from 0 to 3, larger than the one before, behind a comma or a full stop.
fn codes(text: &str) -> Codes {
    let mut starts = Vec::new();
    let mut from = 0;
    for code in ["0", "1", "2", "3"] {
        let leads = [format!(", {code} "), format!(". {code} "), format!("; {code} ")];
        let found = match starts.is_empty() && text.starts_with(&format!("{code} ")) {
            true => Some(0),
            false => {
                let rest = text.get(from..).unwrap_or_default();
                leads.iter().filter_map(|lead| rest.find(lead)).min().map(|at| from + at + 2)
            }
        };
        if let Some(at) = found {
            starts.push((code, at));
            from = at + 1;
        }
    }
    let ends = starts.iter().skip(1).map(|(_, at)| at - 2).chain([text.len()]);
    let meaning = |((code, at), end): ((&str, usize), usize)| {
        let said = text.get(at + 2..end).unwrap_or_default().trim().trim_end_matches(['.', ',', ';']);
        let mut letters = said.chars();
        let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
        (code.to_owned(), format!("{first}{}.", letters.as_str()))
    };
    starts.iter().copied().zip(ends).map(meaning).collect()
}

/// Those of the command, else those of every command.
fn exit_status(codes: Codes) -> String {
    let of_every = || EXIT_STATUS.map(|(code, meaning)| (code.to_owned(), meaning.to_owned())).to_vec();
    let codes = if codes.is_empty() { of_every() } else { codes };
    let entry = |(code, meaning): &(String, String)| format!(".TP\n\\fB{code}\\fR\n{}\n", escaped(meaning));
    format!(".SH \"EXIT STATUS\"\n{}", codes.iter().map(entry).collect::<String>())
}

fn see_also(command: &Command) -> String {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let above = name.rsplit_once('-').map(|(above, _)| above.to_owned());
    let below = command
        .get_subcommands()
        .map(|below| below.get_display_name().unwrap_or_else(|| below.get_name()).to_owned());
    let mut pages: Vec<String> = above.into_iter().chain(below).map(|page| reference(&page, 1)).collect();
    pages.extend([reference("tcpdump", 1), reference("ethtool", 8)]);
    format!(".SH \"SEE ALSO\"\n{}\n", pages.join(",\n"))
}

fn reference(page: &str, section: u8) -> String {
    format!("\\fB{}\\fR({section})", escaped(page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_of_the_command() {
        let (rest, codes) = apart(
            "It waits.\n\nExit codes: 0 done; a session is open. 1 it is not,\nor it has 2 of them, 3 it requires root.\n\nExamples:\n  rxlane x",
        );
        assert_eq!(rest, "It waits.\n\nExamples:\n  rxlane x");
        let codes: Vec<(&str, &str)> = codes.iter().map(|(code, meaning)| (&**code, &**meaning)).collect();
        assert_eq!(
            codes,
            [
                ("0", "Done; a session is open."),
                ("1", "It is not, or it has 2 of them."),
                ("3", "It requires root.")
            ]
        );
        // What is in no such form stays where it is.
        let other = "Exit codes of every command: 0 success, 1 no.";
        assert_eq!(apart(other), (other.to_owned(), Codes::new()));
    }
}
