//! The end of a socket that answers.

use super::{Bearer, ControlError, PATIENCE, Sockets};
use crate::status::Shared;
use std::fs::{self, DirBuilder};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Between a connection that could not be had and the next.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest question, octets.
const QUESTION: u64 = 1024;

/// Who knows the answers.
pub(crate) trait Answer: Send + Sync + 'static {
    /// A line of JSON, without its line feed; `None`: there is no such question. `status` has one, and that of `down` is the
    /// same.
    fn answer(&self, question: &str) -> Option<String>;
}

impl Answer for Shared {
    fn answer(&self, question: &str) -> Option<String> {
        let is_known = matches!(question, "status" | "down");
        is_known.then(|| serde_json::to_string(&self.status()).unwrap_or_default())
    }
}

/// The thread that answers, and its socket; both end with this.
#[derive(Debug)]
pub(crate) struct Server {
    path: PathBuf,
    /// Until it is closed.
    listener: Option<UnixListener>,
    thread: Option<JoinHandle<()>>,
    /// Connections of those who wait for the end.
    waiting: Arc<Mutex<Vec<UnixStream>>>,
}

impl Server {
    /// Answers for what bears `name`. `stop` is written to when somebody asks for its end.
    ///
    /// # Errors
    ///
    /// The socket cannot be made, or one that lives answers there.
    pub fn new(
        sockets: &Sockets,
        name: &str,
        knows: Arc<impl Answer>,
        stop: UnixStream,
    ) -> Result<Server, ControlError> {
        let path = sockets.path(name);
        let failed = |what| {
            let path = path.clone();
            move |source| ControlError::File { what, path, source }
        };
        match DirBuilder::new().mode(0o700).create(sockets.folder()) {
            Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
                let path = sockets.folder().to_owned();
                return Err(ControlError::File { what: "make", path, source });
            }
            _ => {}
        }
        remove_dead(sockets.bearer, name, &path)?;
        let listener = UnixListener::bind(&path).map_err(failed("make"))?;
        let waiting = Arc::new(Mutex::new(Vec::new()));
        let own = listener.try_clone();
        // From here on its end removes the socket.
        let mut server = Server {
            path: path.clone(),
            listener: Some(listener),
            thread: None,
            waiting: Arc::clone(&waiting),
        };
        let own = own.map_err(failed("listen at"))?;
        let kept = Arc::clone(&waiting);
        let answer = move || {
            loop {
                match own.accept() {
                    // Who asks nothing, or does not read, gets nothing.
                    Ok((stream, _)) => drop(answer(stream, &*knows, &stop, &kept)),
                    // The socket was shut down (accept(2)).
                    Err(error) if error.raw_os_error() == Some(libc::EINVAL) => return,
                    // Too many descriptors for the moment, or somebody who went away.
                    Err(_) => thread::sleep(PAUSE),
                }
            }
        };
        let thread = thread::Builder::new().name("control".to_owned()).spawn(answer);
        server.thread = Some(thread.map_err(failed("answer at"))?);
        Ok(server)
    }

    /// Removes the socket and ends the thread. Gives the connections of those who wait for the end.
    pub fn close(&mut self) -> Vec<UnixStream> {
        if let Some(listener) = self.listener.take() {
            // A socket that stays is that of a dead link, which the next one removes.
            let _ = fs::remove_file(&self.path);
            let _ = rustix::net::shutdown(&listener, rustix::net::Shutdown::Both);
            if let Some(thread) = self.thread.take() {
                let _ = thread.join();
            }
        }
        self.waiting.lock().map(|mut waiting| std::mem::take(&mut *waiting)).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.close();
    }
}

fn answer(
    stream: UnixStream,
    knows: &impl Answer,
    mut stop: &UnixStream,
    waiting: &Mutex<Vec<UnixStream>>,
) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE / 10))?;
    stream.set_write_timeout(Some(PATIENCE / 10))?;
    let mut question = String::new();
    BufReader::new((&stream).take(QUESTION)).read_line(&mut question)?;
    let Some(question) = question.strip_suffix('\n') else { return Ok(()) };
    let Some(text) = knows.answer(question) else { return Ok(()) };
    (&stream).write_all((text + "\n").as_bytes())?;
    // After both the process ends; after the second it knows by itself.
    if matches!(question, "down" | "handover")
        && let Ok(mut waiting) = waiting.lock()
    {
        waiting.push(stream);
    }
    if question == "down" {
        stop.write_all(&[0])?;
    }
    Ok(())
}

/// Removes a socket that nobody listens at.
pub(super) fn remove_dead(bearer: Bearer, name: &str, path: &Path) -> Result<(), ControlError> {
    let failed = |what| move |source| ControlError::File { what, path: path.to_owned(), source };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed("read")(error)),
        Ok(metadata) if !metadata.file_type().is_socket() => Err(ControlError::NoSocket(path.to_owned())),
        // An interface may have been renamed, which leaves the socket of its first name.
        Ok(_) if UnixStream::connect(path).is_ok() => {
            Err(ControlError::Held { bearer, name: name.to_owned(), path: path.to_owned() })
        }
        Ok(_) => match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove")(error)),
            _ => Ok(()),
        },
    }
}
