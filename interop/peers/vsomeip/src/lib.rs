//! Empty on purpose: the crate exists for the build of its dependency.
