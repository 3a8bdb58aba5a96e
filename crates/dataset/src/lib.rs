//! *Other people's files*: prompts, conversations and traces.
