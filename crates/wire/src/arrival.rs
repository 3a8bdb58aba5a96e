//! When bytes arrived at this machine: the kernel's receive stamps, and what they are worth.
//!
//! The kernel stamps each packet in Unix time. How long the bytes of a read had waited is the
//! difference of two readings of that one clock, its stamp and ours, so no offset between clocks is
//! carried from read to read: a step of the wall clock can only spoil the reads it falls into, and
//! those are seen and left without a stamp. Where packets were merged the stamp is that of the last.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd};

use goodput_clock::{now, now_and_unix};
use goodput_model::Nanos;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, TimestampingFlag, recvmsg, setsockopt, sockopt,
};

/// When the bytes of one read came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Arrival {
    /// Their arrival by the kernel's word, or else the return of the read.
    pub(crate) at: Nanos,
    /// How long they had waited for the read, by the kernel's word.
    pub(crate) lag: Option<Nanos>,
}

impl Arrival {
    /// The wait in the form in which it is recorded.
    pub(crate) fn lag_us(self) -> Option<u32> {
        self.lag.map(|lag| u32::try_from(lag.as_micros_rounded()).unwrap_or(u32::MAX))
    }

    /// From the return of a read, on both clocks, and the kernel's stamp. Nothing can have come
    /// before `not_before`, the arrival of what was read earlier.
    fn new((read, unix): (Nanos, Nanos), kernel: Option<Nanos>, not_before: Nanos) -> Self {
        let unstamped = Self { at: read, lag: None };
        // Stamped in the future: the wall clock was set back in between.
        let Some(kernel) = kernel.filter(|kernel| *kernel <= unix) else { return unstamped };
        let lag = unix - kernel;
        // Before the beginning of the clock, or before what came earlier: it was set forward.
        match read.0.checked_sub(lag.0) {
            Some(at) if Nanos(at) >= not_before => Self { at: Nanos(at), lag: Some(lag) },
            _ => unstamped,
        }
    }
}

/// Asks the kernel to stamp what this socket receives. Systems that cannot are not an error: their
/// reads come without a stamp.
pub(crate) fn ask_for_stamps(socket: BorrowedFd<'_>) {
    let flags = TimestampingFlag::SOF_TIMESTAMPING_RX_SOFTWARE
        | TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE;
    let _ = setsockopt(&socket, sockopt::Timestamping, &flags);
}

/// Room for the control messages of one read, aligned as their headers must be.
#[repr(align(8))]
struct Control([u8; 128]);

/// Reads what is there: how many bytes, and when they came.
pub(crate) fn receive(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
    not_before: Nanos,
) -> io::Result<(usize, Arrival)> {
    let mut control = Control([0; 128]);
    let mut slices = [IoSliceMut::new(buffer)];
    let message =
        recvmsg::<()>(socket.as_raw_fd(), &mut slices, Some(&mut control.0), MsgFlags::empty())?;
    let mut stamps = message.cmsgs().into_iter().flatten().filter_map(|message| match message {
        ControlMessageOwned::ScmTimestampsns(stamps) => Some(stamps.system),
        _ => None,
    });
    let kernel = stamps.next().map(|time| {
        Nanos(time.tv_sec().cast_unsigned() * 1_000_000_000 + time.tv_nsec().cast_unsigned())
    });
    let arrival = match kernel {
        Some(kernel) => Arrival::new(now_and_unix(), Some(kernel), not_before),
        None => Arrival { at: now(), lag: None },
    };
    Ok((message.bytes, arrival))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Nanos = Nanos::from_millis(3_600_000);

    fn arrival(unix: Nanos, kernel: Nanos) -> Arrival {
        Arrival::new((Nanos(50_000), unix), Some(kernel), Nanos(20_000))
    }

    #[test]
    fn the_wait_is_a_difference_on_the_kernels_own_clock() {
        let unix = Nanos(1_794_711_920_000_000_000);
        let waited = arrival(unix, unix - Nanos(7_000));
        assert_eq!(waited, Arrival { at: Nanos(43_000), lag: Some(Nanos(7_000)) });
        assert_eq!(arrival(unix, unix).at, Nanos(50_000));
    }

    #[test]
    fn a_step_of_the_wall_clock_costs_the_stamp_and_nothing_else() {
        let unix = Nanos(1_794_711_920_000_000_000);
        let by_the_read = Arrival { at: Nanos(50_000), lag: None };
        assert_eq!(arrival(unix - HOUR, unix), by_the_read, "set back");
        assert_eq!(arrival(unix + HOUR, unix), by_the_read, "set forward");
        // A step so small that it cannot be told from a wait is no larger than what came before.
        assert_eq!(arrival(unix + Nanos(30_001), unix), by_the_read);
    }
}
