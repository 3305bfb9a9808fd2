//! The five field reports: what they were fitted to fits, and orders agree.

use rxlane_reports::{Report, Reproduced, Role};

const STEERING: &str = include_str!("../../../../../docs/model/steering.toml");

fn all() -> Vec<Reproduced> {
    let reports = rxlane_reports::names().map(|name| {
        let text = rxlane_reports::text(name).unwrap();
        let report = Report::parse(name, text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(report.name, name);
        report.reproduce().unwrap_or_else(|error| panic!("{error}"))
    });
    reports.collect()
}

#[test]
fn reports_are_reproduced() {
    let results = all();
    let mut predicted = Vec::new();
    for result in &results {
        for compared in &result.figures {
            let name = format!("{}: {}", result.report.name, compared.figure.quantity);
            match compared.figure.role {
                Role::Calibrated => {
                    assert!(compared.error.unwrap().abs() < 0.03, "{name}: {:?}", compared.modelled)
                }
                Role::Predicted => predicted.push((name, compared.error.unwrap())),
                Role::Underivable => {
                    assert!(compared.modelled.is_none() && !compared.figure.note.is_empty(), "{name}")
                }
            }
        }
        for (statement, holds) in &result.orders {
            assert!(holds, "{}: {statement}", result.report.name);
        }
        for parameter in &result.report.parameter {
            let key = &parameter.key;
            // A hash key is no number.
            let known = result.report.value(parameter).is_some() || key.ends_with(".key");
            assert!(known, "{}: {key} is in no scenario", result.report.name);
            let fitted = result.report.figure.iter().find(|figure| figure.quantity == parameter.fitted_to);
            assert_eq!(
                fitted.map(|figure| figure.role),
                Some(Role::Calibrated),
                "{}: {key}",
                result.report.name
            );
        }
    }
    let free: usize = results.iter().map(|result| result.report.parameter.len()).sum();
    assert!(
        predicted.len() >= 12 && free < predicted.len(),
        "{free} parameters, {} predictions",
        predicted.len()
    );
}

/// What was counted in the lab with four CPUs says what is counted with two and eight, about.
#[test]
fn the_lab_s_steering_is_reproduced() {
    let report = Report::parse("steering.toml", STEERING).unwrap_or_else(|error| panic!("{error}"));
    let result = report.reproduce().unwrap_or_else(|error| panic!("{error}"));
    assert!(result.orders.iter().all(|(_, holds)| *holds), "{:?}", result.orders);
    let mut close = (0, 0);
    for compared in &result.figures {
        let (error, name) = (compared.error.unwrap().abs(), &compared.figure.quantity);
        match compared.figure.role {
            Role::Calibrated => assert!(error < 0.02, "{name}: {error}"),
            _ => {
                assert!(error < 0.3, "{name}: {error}");
                close = (close.0 + u32::from(error < 0.15), close.1 + 1);
            }
        }
    }
    assert!(close.1 >= 12 && close.0 * 10 >= close.1 * 8, "{close:?}");
}
