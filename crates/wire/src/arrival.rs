//! When bytes arrived at this machine: the kernel's receive stamps, and what they are worth.
//!
//! The kernel stamps each packet in Unix time. How long the bytes of a read had waited is the
//! difference of two readings of that one clock, its stamp and ours, so no offset between clocks is
//! carried from read to read: a step of the wall clock can only spoil the reads it falls into, and
//! those are seen and left without a stamp. Where packets were merged the stamp is that of the last;
//! where one overtook another that had to be sent again it may be that of the first, so nothing is
//! taken to have come before what was read earlier.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd};

use goodput_clock::{now, now_and_unix};
use goodput_model::Nanos;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, TimestampingFlag, recvmsg, setsockopt, sockopt,
};

/// Packets that came in another order were sent again within this time; a larger difference is a
/// clock that was set.
const OVERTAKEN: Nanos = Nanos::from_millis(1_000);

/// When the bytes of one read came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ReadStamp {
    /// Their arrival by the kernel's word, or else the return of the read.
    pub(crate) at: Nanos,
    /// How long they had waited for the read, by the kernel's word.
    pub(crate) lag: Option<Nanos>,
    /// The kernel's stamp itself, in Unix time: reads with the same one are parts of one arrival.
    pub(crate) kernel: Option<Nanos>,
}

impl ReadStamp {
    /// The wait in the form in which it is recorded.
    pub(crate) fn lag_us(self) -> Option<u32> {
        self.lag.map(|lag| u32::try_from(lag.as_micros_rounded()).unwrap_or(u32::MAX))
    }

    /// Seen at the return of a read, without the kernel's word.
    pub(crate) fn by_read(at: Nanos) -> Self {
        Self { at, lag: None, kernel: None }
    }

    /// From the return of a read, on both clocks, and the kernel's stamp. Nothing can have come
    /// before what was read earlier.
    fn by_kernel(read: Nanos, unix: Nanos, kernel: Nanos, earlier: &Self) -> Self {
        // Stamped in the future: the wall clock was set back in between.
        if kernel > unix {
            return Self::by_read(read);
        }
        let lag = unix - kernel;
        let stamped = |at: Nanos| Self { at, lag: Some(read - at), kernel: Some(kernel) };
        if earlier.kernel == Some(kernel) {
            return stamped(earlier.at);
        }
        match read.0.checked_sub(lag.0).map(Nanos) {
            Some(at) if at >= earlier.at => stamped(at),
            // Overtaken on the way, or two readings of a clock.
            Some(at) if earlier.at - at < OVERTAKEN => stamped(earlier.at),
            // The wall clock was set forward in between.
            _ => Self::by_read(read),
        }
    }
}

/// Asks the kernel to stamp what this socket receives. Systems that cannot are not an error: their
/// reads come without a stamp.
pub(crate) fn enable_kernel_stamps(socket: BorrowedFd<'_>) {
    let flags = TimestampingFlag::SOF_TIMESTAMPING_RX_SOFTWARE
        | TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE;
    let _ = setsockopt(&socket, sockopt::Timestamping, &flags);
}

/// Room for the control messages of one read, aligned as their headers must be.
#[repr(align(8))]
struct ControlBuffer([u8; 128]);

/// Reads what is there: how many bytes, and when they came. `earlier` is what was read before.
pub(crate) fn read_with_stamp(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
    earlier: &ReadStamp,
) -> io::Result<(usize, ReadStamp)> {
    let mut control = ControlBuffer([0; 128]);
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
        Some(kernel) => {
            let (read, unix) = now_and_unix();
            ReadStamp::by_kernel(read, unix, kernel, earlier)
        }
        None => ReadStamp::by_read(now()),
    };
    Ok((message.bytes, arrival))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Nanos = Nanos::from_millis(3_600_000);

    fn arrival(unix: Nanos, kernel: Nanos) -> ReadStamp {
        ReadStamp::by_kernel(Nanos(50_000), unix, kernel, &ReadStamp::by_read(Nanos(20_000)))
    }

    #[test]
    fn the_wait_is_a_difference_on_the_kernels_own_clock() {
        let unix = Nanos(1_794_711_920_000_000_000);
        let waited = arrival(unix, unix - Nanos(7_000));
        assert_eq!((waited.at, waited.lag), (Nanos(43_000), Some(Nanos(7_000))));
        assert_eq!(arrival(unix, unix).at, Nanos(50_000));
    }

    #[test]
    fn parts_of_one_packet_arrived_together() {
        let unix = Nanos(1_794_711_920_000_000_000);
        let first = arrival(unix, unix - Nanos(7_000));
        let later = |kernel, earlier| {
            ReadStamp::by_kernel(Nanos(51_000), unix + Nanos(1_013), kernel, earlier)
        };
        let second = later(unix - Nanos(7_000), &first);
        assert_eq!((second.at, second.lag), (first.at, Some(Nanos(8_000))));
        assert_ne!(later(unix - Nanos(6_000), &first).at, first.at);
        // One that was overtaken was readable when the other had come, and does not upset the next.
        let overtaken = later(unix - Nanos(9_000), &first);
        assert_eq!(overtaken.at, first.at);
        assert_eq!(later(unix, &overtaken).at, Nanos(49_987));
    }

    #[test]
    fn a_step_of_the_wall_clock_costs_the_stamp_and_nothing_else() {
        let unix = Nanos(1_794_711_920_000_000_000);
        let by_the_read = ReadStamp::by_read(Nanos(50_000));
        assert_eq!(arrival(unix - HOUR, unix), by_the_read, "set back");
        assert_eq!(arrival(unix + HOUR, unix), by_the_read, "set forward");
    }
}
