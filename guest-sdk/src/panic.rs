//! Tells the operator why a guest failed: a panic's message and place go to the host's log before the trap.

use std::sync::Once;

/// Installs the hook, once per instance. Every kind's first call does so.
pub(crate) fn report_panics() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // Elsewhere than in Wasm, as in an author's own tests, the usual report on stderr is better.
        if cfg!(target_arch = "wasm32") {
            std::panic::set_hook(Box::new(|panic| crate::log::write(crate::log::Level::Error, &panic.to_string())));
        }
    });
}
