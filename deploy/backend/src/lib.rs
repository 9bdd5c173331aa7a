//! An HTTP state backend for OpenTofu and Terraform, on SQLite.
