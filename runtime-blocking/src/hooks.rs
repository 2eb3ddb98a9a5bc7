//! What of an embedder's own an agent of this runtime calls. Knows no way to wait.

use std::fmt;
use std::sync::Arc;

use reasonix_core::agent::Config;
use reasonix_core::call::CustomCall;

use crate::driver::Error;

/// A tool of an embedder: what is called in, its text out; `Err` is a failed tool, whose reason the
/// model reads. Runs on a thread of the pool, several at a time if several sessions call it. Nobody
/// waits for one that was cancelled or took longer than
/// [`Limits::custom_call`](reasonix_core::limits::Limits::custom_call), but it runs on to its end.
pub type CustomTool = Arc<dyn Fn(&CustomCall) -> Result<String, String> + Send + Sync>;

/// What of an embedder's own an agent calls: by default nothing.
///
/// ```
/// use reasonix_blocking::Hooks;
///
/// let hooks = Hooks::new().tools(|call| match call.name.as_str() {
///     "lookup" => Ok(format!("what {} is about", call.arguments)),
///     other => Err(format!("there is no tool {other}")),
/// });
/// ```
#[derive(Clone, Default)]
#[must_use]
pub struct Hooks {
    tools: Option<CustomTool>,
}

impl Hooks {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs the tools that [`Config::tools`] names, all of them: which one is called is in the call.
    pub fn tools<F>(mut self, run: F) -> Self
    where
        F: Fn(&CustomCall) -> Result<String, String> + Send + Sync + 'static,
    {
        self.tools = Some(Arc::new(run));
        self
    }

    /// Whether an agent of this configuration can be driven with them.
    ///
    /// # Errors
    ///
    /// [`Error::NoTools`]: it offers tools to the model that nothing runs. [`Error::Limits`]: with its
    /// limits it might stand still.
    pub fn check(&self, config: &Config) -> Result<(), Error> {
        config.limits.check()?;
        match config.tools.first() {
            Some(tool) if self.tools.is_none() => Err(Error::NoTools(tool.name.to_string())),
            Some(_) | None => Ok(()),
        }
    }

    pub(crate) fn custom(&self) -> Option<&CustomTool> {
        self.tools.as_ref()
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks")
            .field("tools", &self.tools.is_some())
            .finish()
    }
}
