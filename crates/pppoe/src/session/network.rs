//! A network protocol of a session: its negotiation, and what became of it.

use crate::automaton::{Event, State};
use crate::negotiation::{Layer, Negotiation, Signal};
use crate::session::NetworkFailure;
use crate::turn::Turn;

pub(crate) struct Network<L> {
    pub negotiation: Negotiation,
    pub layer: L,
    /// Why it is not up.
    pub failure: NetworkFailure,
    /// Whether it was said to be up.
    pub up: bool,
}

impl<L: Layer> Network<L> {
    /// Begins to negotiate.
    pub fn open(mut layer: L, turn: &mut Turn<'_>) -> Network<L> {
        layer.reset(turn);
        let mut negotiation = Negotiation::new();
        negotiation.event(&mut layer, Event::Open, turn);
        negotiation.event(&mut layer, Event::Up, turn);
        Network { negotiation, layer, failure: NetworkFailure::NoAnswer, up: false }
    }

    /// One of another process: up, or ended so that the peer may begin it anew.
    pub fn resumed(layer: L, up: bool, identifier: u8) -> Network<L> {
        let state = if up { State::Opened } else { State::Stopped };
        let negotiation = Negotiation::resumed(state, identifier);
        Network { negotiation, layer, failure: NetworkFailure::NoAnswer, up }
    }

    /// Whether it has ended and this end will not try again by itself.
    pub fn is_finished(&self) -> bool {
        matches!(self.negotiation.state(), State::Stopped | State::Closed | State::Closing)
    }

    /// Ends it for `failure`.
    pub fn fail(&mut self, failure: NetworkFailure, event: Event, turn: &mut Turn<'_>) -> Option<Signal> {
        self.failure = failure;
        self.negotiation.event(&mut self.layer, event, turn)
    }
}
