//! What TCP knows about a connection (`TCP_INFO`), as differences between two looks.

use std::cell::Cell;
use std::os::fd::{AsRawFd, BorrowedFd};

use goodput_model::{Nanos, TcpFacts};
use nix::libc;

/// Totals at the latest look.
#[derive(Debug, Default)]
pub(crate) struct TcpWatch(Cell<TcpFacts>);

impl TcpWatch {
    /// What has happened since the latest look; `None` where the system does not say.
    pub(crate) fn since_last(&self, socket: BorrowedFd<'_>) -> Option<TcpFacts> {
        let total = tcp_totals(socket)?;
        let before = self.0.replace(total);
        Some(TcpFacts {
            retransmits: total.retransmits.saturating_sub(before.retransmits),
            out_of_order: total.out_of_order.saturating_sub(before.out_of_order),
            window_limited: total.window_limited - before.window_limited,
            min_rtt: total.min_rtt,
        })
    }
}

#[expect(unsafe_code, reason = "no safe binding reads the whole structure")]
fn tcp_totals(socket: BorrowedFd<'_>) -> Option<TcpFacts> {
    // SAFETY: plain numbers, for which zero is a value.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut size = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the pointer is to `size` writable bytes, and the kernel writes no more than that; an
    // older one writes less and leaves zeros.
    let status = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut size,
        )
    };
    (status == 0).then(|| TcpFacts {
        retransmits: info.tcpi_total_retrans,
        out_of_order: info.tcpi_rcv_ooopack,
        window_limited: Nanos::from_micros(info.tcpi_rwnd_limited),
        min_rtt: Nanos::from_micros(u64::from(info.tcpi_min_rtt)),
    })
}
