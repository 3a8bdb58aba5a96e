use std::io::Write;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use rustix::fs::{CWD, FileType as Kind, Mode, mknodat};

use super::*;

/// A folder with everything that a path may lead to.
fn zoo() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("plain"), "abcdef").unwrap();
    fs::create_dir(at("folder")).unwrap();
    symlink(at("plain"), at("link")).unwrap();
    symlink("/dev/zero", at("zero")).unwrap();
    symlink(at("nothing"), at("dangling")).unwrap();
    mknodat(CWD, at("pipe"), Kind::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    drop(UnixListener::bind(at("socket")).unwrap());
    folder
}

fn said<T>(outcome: io::Result<T>) -> String {
    outcome.map_or_else(|error| error.to_string(), |_| "opened".to_owned())
}

#[test]
fn only_plain_files_are_opened() {
    let zoo = zoo();
    let at = |name: &str| -> PathBuf { zoo.path().join(name) };
    for (name, named, inside) in [
        ("plain", "opened", "opened"),
        ("link", "opened", "it is a link, not a plain file"),
        ("zero", "it is a device, not a plain file", "it is a link, not a plain file"),
        ("folder", "it is a folder, not a plain file", "it is a folder, not a plain file"),
        ("pipe", "it is a pipe, not a plain file", "it is a pipe, not a plain file"),
        ("socket", "it is a socket, not a plain file", "it is a socket, not a plain file"),
    ] {
        assert_eq!(said(open(&at(name))), named, "{name}");
        assert_eq!(said(open_stream(&at(name))), named, "{name}");
        assert_eq!(said(open_inside(&at(name))), inside, "{name}");
        assert_eq!(said(read_text(&at(name), 6)), named, "{name}");
        assert_eq!(said(check_inside(&at(name))), inside, "{name}");
        assert_eq!(said(read_text_inside(&at(name), 6)), inside, "{name}");
    }
    assert_eq!(open(&at("dangling")).unwrap_err().kind(), io::ErrorKind::NotFound);
    assert!(said(open_inside(&at("dangling"))).contains("a link"));
    assert!(said(check_inside(&at("dangling"))).contains("a link"), "writing would follow it");
    check_inside(&at("nothing")).unwrap();
    assert_eq!(said(open(Path::new("/dev/zero"))), "it is a device, not a plain file");
}

#[test]
fn a_limit_is_a_limit() {
    let zoo = zoo();
    let path = zoo.path().join("plain");
    assert_eq!(read(&path, 6).unwrap(), b"abcdef");
    assert_eq!(said(read(&path, 5)), "it is larger than 5 bytes");
    let error = read_inside(&path, 5).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    // A file of this length takes no room on disk, and must take none in memory.
    let large = File::create(zoo.path().join("large")).unwrap();
    large.set_len(1 << 40).unwrap();
    assert_eq!(said(read(&zoo.path().join("large"), MOST_SMALL)), "it is larger than 16 MiB");
    // One that says nothing of its length ends all the same.
    assert_eq!(said(read(Path::new("/proc/self/smaps"), 64)), "it is larger than 64 bytes");
    fs::write(&path, b"ab\xff").unwrap();
    assert_eq!(said(read_text(&path, 6)), "byte 3 is not UTF-8");
}

#[test]
fn a_pipe_that_was_handed_over_is_a_stream() {
    let (reader, mut writer) = io::pipe().unwrap();
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
    let path = Path::new(&path);
    assert_eq!(said(open(path)), "it is a pipe, not a plain file");
    let mut stream = open_stream(path).unwrap();
    drop(reader);
    // What has not come yet is waited for.
    let writing = std::thread::spawn(move || {
        std::thread::yield_now();
        writer.write_all(b"1\n2\n").unwrap();
    });
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    writing.join().unwrap();
    assert_eq!(text, "1\n2\n");
    assert!(is_inherited(Path::new("/dev/stdin")) && is_inherited(Path::new("/dev/fd/63")));
    assert!(!is_inherited(Path::new("/tmp/x")) && !is_inherited(Path::new("/dev/fd")));
}
