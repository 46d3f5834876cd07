//! `derive(JsonSchema)` for every program but the one that writes the JSON Schemas: it derives
//! nothing.
//!
//! In: a type of a plan or a result. Out: no code. What schemars derives in its place (feature
//! `json-schema` of `weir-units`, `weir-stats` and `weir-schema`) is half of the code of these
//! crates, and no run needs it.

#![forbid(unsafe_code)]

use proc_macro::TokenStream;

/// Accepts what schemars does, and derives nothing.
#[proc_macro_derive(JsonSchema, attributes(schemars))]
pub fn derive_nothing(_item: TokenStream) -> TokenStream {
    TokenStream::new()
}
