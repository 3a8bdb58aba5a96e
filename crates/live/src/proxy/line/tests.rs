use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use super::*;

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A line and its client.
async fn pair() -> (Rc<Line>, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    (Line::new(listener.accept().await.unwrap().0), client)
}

fn on_a_runtime(work: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work);
}

#[test]
fn a_task_waiting_for_a_client_is_woken_by_another_tasks_write() {
    on_a_runtime(async {
        let (line, mut client) = pair().await;
        let mut io = LineIo(Rc::clone(&line));
        let write = |io: &mut LineIo, cx: &mut Context<'_>| {
            Pin::new(io).poll_write(cx, &[0; 4096]).map(Result::unwrap)
        };
        // One task fills the socket, ...
        let mut written = 0;
        poll_fn(|cx| {
            while let Poll::Ready(n) = write(&mut io, cx) {
                written += n;
            }
            Poll::Ready(())
        })
        .await;
        // ... another waits, ...
        let wakes = Arc::new(Wakes::default());
        let other = Waker::from(Arc::clone(&wakes));
        let mut other = Context::from_waker(&other);
        assert!(
            line.poll_client_caught_up(&mut other).is_pending()
                && line.poll_client_caught_up(&mut other).is_pending()
        );
        // ... and the first goes on.
        client.read_exact(&mut vec![0; written]).await.unwrap();
        poll_fn(|cx| write(&mut io, cx)).await;
        assert_eq!(wakes.0.load(Ordering::SeqCst), 1);
        assert!(line.poll_client_caught_up(&mut other).is_ready());
    });
}

#[test]
fn an_idle_client_is_asked_to_leave_before_it_is_closed() {
    on_a_runtime(async {
        let (line, _client) = pair().await;
        let limits = Limits::default();
        drop(line.begin_request(true));
        let after = |ms| line.idle_since.get() + IDLE_TIME + Nanos::from_millis(ms);
        for (ms, is_leaving, is_closed) in
            [(0, false, false), (1, true, false), (900, true, false), (1_100, true, true)]
        {
            assert!(!line.close_if_slow(&limits, after(ms)), "idle is not slow");
            let is_so = (line.leaving_since.get().is_some(), line.is_closed.get());
            assert_eq!(is_so, (is_leaving, is_closed), "{ms}");
        }
        let (slow, _client) = pair().await;
        let present = slow.idle_since.get() + Nanos::from(limits.head_time) + Nanos(1);
        assert!(slow.close_if_slow(&limits, present) && slow.is_closed.get());
    });
}

#[test]
fn one_that_was_idle_before_it_was_asked_to_leave_has_time_to() {
    on_a_runtime(async {
        let limit = Nanos::from_millis(5_000);
        let (line, _client) = pair().await;
        line.idle_since.set(now() - limit - Nanos(1));
        assert!(line.is_idle_for(limit));
        line.ask_to_end(now());
        assert!(!line.is_idle_for(limit));
        line.ask_to_end(now() - limit - Nanos(1));
        assert!(line.is_idle_for(limit));
        let (under_way, _) = line.begin_request(true);
        assert!(!line.is_idle_for(limit));
        drop(under_way);
        assert!(!line.is_idle_for(limit), "it has just ended");
    });
}

#[test]
fn a_handshake_is_no_arrival() {
    on_a_runtime(async {
        let (line, _client) = pair().await;
        line.note_bytes();
        line.handshake_done();
        let greeted = now();
        line.note_bytes();
        assert!(line.begin_request(false).1 >= greeted);
    });
}

#[test]
fn idle_connections_make_way_and_busy_ones_do_not() {
    on_a_runtime(async {
        let (line, mut client) = pair().await;
        let later = |ms| line.idle_since.get() + Nanos::from_millis(ms);
        // One that has not asked has a little time to.
        assert!(line.idle_since().is_some() && !line.close_for_another(later(900)));
        let (under_way, _) = line.begin_request(false);
        assert_eq!(line.idle_since(), None);
        drop(under_way);
        assert_eq!(line.idle_since(), Some(line.idle_since.get()));
        line.deaf_since.set(Some(now()));
        assert_eq!(line.idle_since(), None, "it has not taken all of its answer");
        line.deaf_since.set(None);
        // The next request has come, and hyper has not read it yet.
        tokio::io::AsyncWriteExt::write_all(&mut client, b"G").await.unwrap();
        line.stream.readable().await.unwrap();
        assert!(
            !line.close_for_another(later(0))
                && !line.close_for_another(later(900))
                && !line.is_making_way()
        );
        assert!(
            line.close_for_another(later(1_100)) && line.is_making_way(),
            "the rest of it takes too long"
        );
        assert_eq!(line.idle_since(), None, "once is enough");
        // Between two requests nothing is awaited.
        let (line, _client) = pair().await;
        drop(line.begin_request(false));
        assert!(line.close_for_another(line.idle_since.get()));
        let (line, _client) = pair().await;
        assert!(line.close_for_another(line.idle_since.get() + GRACE) && line.is_closed.get());
    });
}
