//! OpenTofu or Terraform as a child process: which one, how it is started, what it says, how it is interrupted.

mod child;
mod interrupts;
mod program;
mod ui;

pub use child::{ChildError, Exit, Invocation, Stdout};
pub use interrupts::Interrupts;
pub use program::{Flavor, Places, Program, ProgramError, Version, find_on_path, is_executable};
pub use ui::{Action, Counts, Diagnostic, Notice, Severity, Status, Transcript, UiError};
