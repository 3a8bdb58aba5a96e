//! *The lab*: what makes a run correct, between arguments and pages. It never prints and never exits;
//! what happens is told to an [`Observer`].
//!
//! | module | what it holds |
//! |---|---|
//! | [`readiness`] | from a plan to a target that answers |
//! | [`materials`] | the files a workload is made of, from disk or from the [`hub`] |
//! | [`vocabulary`] | what a word costs in the server's tokens |
//! | [`judge`] | answers checked after the run |
//! | [`emptying`] | waiting until a server has nothing left to do |
//! | [`system`] | what the server says about itself |
//! | [`canary`], [`host`] | this client and its machine |

pub mod canary;
pub mod emptying;
mod error;
mod events;
pub mod host;
pub mod hub;
pub mod judge;
pub mod materials;
pub mod readiness;
pub mod system;
pub mod vocabulary;

pub use error::{Failed, Problem};
pub use events::{Event, Observer, Silent};

#[cfg(test)]
mod testing {
    //! What tests of this crate share.

    use goodput_model::Plan;

    /// A plan for one request a second to this target.
    pub(crate) fn plan_for(url: &str) -> Plan {
        let mut plan = goodput_record::plan_of(include_str!("../tests/plan.toml")).unwrap();
        url.clone_into(&mut plan.target.url);
        plan
    }
}
