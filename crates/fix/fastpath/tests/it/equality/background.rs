//! What runs in a router until the test ends.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use testkit::netns::Namespace;

/// A thread in a namespace, with what it runs.
pub struct Background {
    ask: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// `run` gets the stream that becomes readable when its end is requested, the other end of it, and a sender, by which it says
    /// that it is up.
    pub fn start(
        namespace: &Arc<Namespace>,
        run: impl FnOnce(UnixStream, UnixStream, Sender<()>) + Send + 'static,
    ) -> Background {
        let (stop, ask) = UnixStream::pair().expect("a pair of sockets");
        let other = ask.try_clone().expect("a descriptor");
        let (up, is_up) = channel();
        let namespace = Arc::clone(namespace);
        let thread = thread::spawn(move || namespace.inside(|| run(stop, other, up)));
        is_up.recv().expect("it comes up");
        Background { ask, thread: Some(thread) }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.ask.write_all(&[1]);
        let ended = self.thread.take().map(JoinHandle::join);
        if !thread::panicking() {
            assert!(matches!(ended, Some(Ok(()))), "what ran in the router has failed");
        }
    }
}
