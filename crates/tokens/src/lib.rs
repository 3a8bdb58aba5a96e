//! *How many*: tokenizers.
