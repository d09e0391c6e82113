//! Work written straight through, which the host suspends and resumes as it likes: a plain function, and the macro
//! that makes it a `job` guest.

/// Makes a function the `job` guest that this crate compiles to.
///
/// The function gets the arguments that [`tasks::start`](crate::tasks::start) was given, and its result, or its error's
/// message, goes to the game's [`on_task`](crate::Game::on_task). It may take as long as it needs: the host runs it in
/// what each frame leaves over. It sees nothing of the world, which may change while it is suspended; what it needs
/// comes in its arguments.
///
/// ```
/// use wheelhouse_guest::prelude::*;
///
/// /// How many primes there are below a number given as text.
/// fn count_primes(arguments: Vec<u8>) -> Result<Vec<u8>, Refusal> {
///     let limit: u32 = std::str::from_utf8(&arguments)?.parse()?;
///     let primes = (2..limit).filter(|number| (2..*number).all(|divisor| number % divisor != 0)).count();
///     Ok(primes.to_string().into_bytes())
/// }
///
/// wheelhouse_guest::job!(count_primes);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! job {
    ($run:path) => {
        const _: () = {
            struct Exported;

            impl $crate::bindings::job::Guest for Exported {
                fn run(
                    arguments: ::std::vec::Vec<u8>,
                ) -> ::core::result::Result<::std::vec::Vec<u8>, ::std::string::String> {
                    $crate::job::run($run, arguments)
                }
            }

            impl $crate::bindings::job::exports::wheelhouse::sim::lifecycle::Guest for Exported {
                /// A job has no state between calls: there is only one.
                fn save() -> ::std::vec::Vec<u8> {
                    ::std::vec::Vec::new()
                }

                fn restore(_state: ::std::vec::Vec<u8>) -> ::core::result::Result<(), ::std::string::String> {
                    ::core::result::Result::Ok(())
                }
            }

            #[cfg(target_arch = "wasm32")]
            $crate::bindings::job::export_job! { Exported with_types_in $crate::bindings::job }

            // Elsewhere nothing is exported, and the function would count as dead code.
            #[cfg(not(target_arch = "wasm32"))]
            const _: $crate::job::Run = |arguments| $crate::job::run($run, arguments);
        };
    };
}

/// The export's signature.
#[doc(hidden)]
pub type Run = fn(Vec<u8>) -> Result<Vec<u8>, String>;

/// Runs the author's function, whose error may be a [`Refusal`](crate::Refusal), a `String` or any other that can be
/// shown.
#[doc(hidden)]
pub fn run<E: std::fmt::Display>(
    run: impl FnOnce(Vec<u8>) -> Result<Vec<u8>, E>,
    arguments: Vec<u8>,
) -> Result<Vec<u8>, String> {
    crate::panic::report_panics();
    run(arguments).map_err(|error| error.to_string())
}
