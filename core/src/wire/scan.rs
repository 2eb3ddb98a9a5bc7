//! The one scan of a frame: UTF-8, JSON grammar, depth, surrogates, duplicate keys, and where the
//! members of the envelope are. Knows no method and builds no values.
