//! The end of a socket that answers.

use super::ControlError;
use super::queue::RequestQueue;
use crate::instance::{Instances, Kind};
use crate::steps::step;
use kernel::file::Lock;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use rustix::process::{Pid, test_kill_process};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::linux::fs::MetadataExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Connections that the kernel keeps until they are accepted.
const BACKLOG: i32 = 128;

pub trait ControlHandler: Send + Sync + 'static {
    /// A line of JSON, without its line feed; `None`: there is no such question. `status` has one, and that of `down` is the
    /// same.
    fn answer(&self, question: &str) -> Option<String>;

    /// Takes over a connection, which does not block, where the question is no question but the beginning of a talk; gives it
    /// back where it is one.
    fn adopt(&self, _question: &str, stream: UnixStream) -> Option<UnixStream> {
        Some(stream)
    }
}

/// The thread that answers, and its socket; both end with this.
#[derive(Debug)]
pub struct Server {
    /// Where the socket is, and where it is to be.
    path: PathBuf,
    place: PathBuf,
    /// Device and number of its file.
    file: Option<(u64, u64)>,
    /// Until it is closed.
    listener: Option<UnixListener>,
    thread: Option<JoinHandle<()>>,
    /// Connections of those who wait for the end.
    waiting: Arc<Mutex<Vec<UnixStream>>>,
    /// Sockets of others that may be left.
    others: Vec<PathBuf>,
}

impl Server {
    /// Answers for the instance `name`. `stop` is written to when somebody asks for its end.
    pub fn new(
        instances: &Instances,
        name: &str,
        handler: Arc<impl ControlHandler>,
        stop: UnixStream,
    ) -> Result<Server, ControlError> {
        let path = instances.file(name, ".sock");
        instances.state().make()?;
        remove_abandoned(instances);
        let placing = placing(&path)?;
        remove_dead(instances.kind(), name, &path)?;
        let server = Server::at(path.clone(), path, handler, stop);
        drop(placing);
        server
    }

    /// The same while another process answers for `name`: at a socket of its own, until [`Server::take_place`].
    pub fn standby(
        instances: &Instances,
        name: &str,
        handler: Arc<impl ControlHandler>,
        stop: UnixStream,
    ) -> Result<Server, ControlError> {
        let place = instances.file(name, ".sock");
        instances.state().make()?;
        remove_abandoned(instances);
        Server::at(standby_path(&place, &std::process::id().to_string()), place, handler, stop)
    }

    fn at(
        path: PathBuf,
        place: PathBuf,
        handler: Arc<impl ControlHandler>,
        stop: UnixStream,
    ) -> Result<Server, ControlError> {
        let failed = |what| {
            let path = path.clone();
            move |source| ControlError::File { what, path, source }
        };
        let listener = listener(&path).map_err(failed("make"))?;
        let waiting = Arc::new(Mutex::new(Vec::new()));
        let own = listener.try_clone();
        step();
        // From here on its end removes the socket.
        let mut server = Server {
            file: file(&path),
            path: path.clone(),
            place,
            listener: Some(listener),
            thread: None,
            waiting: Arc::clone(&waiting),
            others: Vec::new(),
        };
        let queue = RequestQueue::new(own.map_err(failed("listen at"))?, handler, stop, waiting);
        let thread = thread::Builder::new().name("control".to_owned()).spawn(|| queue.serve());
        server.thread = Some(thread.map_err(failed("answer at"))?);
        Ok(server)
    }

    /// Answers for the name from now on, whoever did so before.
    pub fn take_place(&mut self) -> Result<(), ControlError> {
        if self.path == self.place {
            return Ok(());
        }
        let path = self.place.clone();
        fs::rename(&self.path, &self.place).map_err(|source| ControlError::File {
            what: "make",
            path: path.clone(),
            source,
        })?;
        self.path = path;
        Ok(())
    }

    /// Answers for the name again, where a process that had taken the place has ended.
    pub fn retake_place(
        &mut self,
        instances: &Instances,
        name: &str,
        handler: Arc<impl ControlHandler>,
        stop: UnixStream,
    ) -> Result<(), ControlError> {
        if self.file.is_some() && self.file == file(&self.place) {
            return Ok(());
        }
        let mut again = Server::new(instances, name, handler, stop)?;
        again.others = std::mem::take(&mut self.others);
        let waiting = std::mem::replace(self, again).close();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).extend(waiting);
        Ok(())
    }

    /// Has the [standby](Server::standby) socket of a process of this number removed with this one's own, if nobody listens at it
    /// by then: a process that was killed leaves it.
    pub fn remove_with_own(&mut self, pid: u32) {
        self.others.push(standby_path(&self.place, &pid.to_string()));
    }

    /// Removes the socket and ends the thread. Gives the connections of those who wait for the end.
    pub fn close(&mut self) -> Vec<UnixStream> {
        if let Some(listener) = self.listener.take() {
            for path in self.others.drain(..) {
                if is_dead(&path) {
                    let _ = fs::remove_file(path);
                }
            }
            // Another process may have taken its place.
            if self.file.is_some() && self.file == file(&self.path) {
                step();
                // What cannot be removed is the socket of a dead process, which the next one removes.
                let _ = fs::remove_file(&self.path);
            }
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

/// A socket that its owner alone can connect to, from the moment that it has a name: the kernel gives the file the mode of the
/// socket, less the umask, which may take away more than was requested.
fn listener(path: &Path) -> io::Result<UnixListener> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::fs::fchmod(&socket, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)?;
    step();
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    step();
    let usable = fs::set_permissions(path, Permissions::from_mode(0o600));
    usable.and_then(|()| Ok(listen(&socket, BACKLOG)?)).inspect_err(|_| {
        let _ = fs::remove_file(path);
    })?;
    Ok(UnixListener::from(socket))
}

/// Where a process has its socket that is to have one at `place`.
fn standby_path(place: &Path, number: &str) -> PathBuf {
    let mut path = place.to_owned().into_os_string();
    path.push(format!(".{number}"));
    PathBuf::from(path)
}

fn file(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|file| (file.st_dev(), file.st_ino()))
}

/// Removes the [standby](Server::standby) sockets of processes that were killed before they could take the place: nobody
/// listens there, and there is no such process any more. One that is just being made is not listened at either.
pub(super) fn remove_abandoned(instances: &Instances) {
    let prefix = instances.named("").stem();
    let number = |entry: &fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let (_, number) = name.strip_prefix(&prefix)?.rsplit_once(".sock.")?;
        number.parse::<i32>().ok().and_then(Pid::from_raw)
    };
    // Who cannot read the folder gets that answer from what it asks.
    for entry in fs::read_dir(instances.state().path()).into_iter().flatten().filter_map(Result::ok) {
        let has_ended = |pid| test_kill_process(pid) == Err(Errno::SRCH);
        let path = entry.path();
        if number(&entry).is_some_and(has_ended) && is_dead(&path) {
            let _ = fs::remove_file(path);
        }
    }
}

/// Whether there is a socket that nobody listens at.
pub(super) fn is_dead(path: &Path) -> bool {
    UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// The lock of the folder in which `path` is. Under it a socket is made, and one that is dead is found and removed: one that has
/// a name and is not listened at yet looks dead.
fn placing(path: &Path) -> Result<Lock, ControlError> {
    let folder = path.parent().unwrap_or(path);
    let locked = File::open(folder).and_then(Lock::wait);
    locked.map_err(|source| ControlError::File { what: "lock", path: folder.to_owned(), source })
}

/// Whether nobody listens at a socket, as it seemed; `false`: somebody does, or did until now.
pub(super) fn is_killed(path: &Path) -> Result<bool, ControlError> {
    let _placing = placing(path)?;
    Ok(is_dead(path))
}

/// Removes a socket at which nobody seems to listen; `false`: somebody does, or did until now.
pub(super) fn remove_if_dead(kind: Kind, name: &str, path: &Path) -> Result<bool, ControlError> {
    let _placing = placing(path)?;
    match remove_dead(kind, name, path) {
        Ok(()) => Ok(true),
        Err(ControlError::Held { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes a socket that nobody listens at. For who has [`placing`].
fn remove_dead(kind: Kind, name: &str, path: &Path) -> Result<(), ControlError> {
    let failed = |what| move |source| ControlError::File { what, path: path.to_owned(), source };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed("read")(error)),
        Ok(metadata) if !metadata.file_type().is_socket() => Err(ControlError::NoSocket(path.to_owned())),
        // An interface may have been renamed, which leaves the socket of its first name.
        Ok(_) if UnixStream::connect(path).is_ok() => {
            Err(ControlError::Held { kind, name: name.to_owned(), path: path.to_owned() })
        }
        Ok(_) => match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove")(error)),
            _ => Ok(()),
        },
    }
}
