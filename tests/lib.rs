//! Conformance of reasonix: harness, reference models, generators.
