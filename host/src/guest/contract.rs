//! The WIT package as Rust types: the interfaces that guests import, once, and for each kind of loop guest the exports
//! that the host calls. Everything here is generated from `wit/`; no file beside it spells a type of the contract out.

/// The interfaces that loop guests may import. `imports/` implements them, a file each.
pub mod imports {
    wasmtime::component::bindgen!({
        path: "../wit",
        inline: "
            package wheelhouse:host;
            world imports {
                import wheelhouse:sim/log@0.1.0;
                import wheelhouse:sim/clock@0.1.0;
                import wheelhouse:sim/random@0.1.0;
                import wheelhouse:sim/timers@0.1.0;
                import wheelhouse:sim/tasks@0.1.0;
                import wheelhouse:sim/events@0.1.0;
                import wheelhouse:sim/entities@0.1.0;
                import wheelhouse:sim/kv@0.1.0;
                import wheelhouse:sim/services@0.1.0;
                import wheelhouse:sim/gate@0.1.0;
                import wheelhouse:sim/metrics@0.1.0;
                import wheelhouse:sim/thinking@0.1.0;
                import wheelhouse:sim/stepping@0.1.0;
            }
        ",
        world: "wheelhouse:host/imports",
        imports: { default: trappable },
    });
}

pub use imports::wheelhouse::sim;

/// One module of exports, whose interface types are those of [`imports`].
macro_rules! exports_of {
    ($module:ident, $world:literal, $what:literal, [$($interface:literal => $path:ident),* $(,)?]) => {
        #[doc = $what]
        pub mod $module {
            wasmtime::component::bindgen!({
                path: "../wit",
                world: $world,
                with: { $($interface: super::sim::$path),* },
            });
        }
    };
}

exports_of!(game, "wheelhouse:sim/game", "What a guest of kind `game` exports.", [
    "wheelhouse:sim/types" => types,
    "wheelhouse:sim/log" => log,
    "wheelhouse:sim/clock" => clock,
    "wheelhouse:sim/random" => random,
    "wheelhouse:sim/timers" => timers,
    "wheelhouse:sim/tasks" => tasks,
    "wheelhouse:sim/events" => events,
    "wheelhouse:sim/entities" => entities,
    "wheelhouse:sim/kv" => kv,
    "wheelhouse:sim/services" => services,
    "wheelhouse:sim/gate" => gate,
    "wheelhouse:sim/metrics" => metrics,
    "wheelhouse:sim/thinking" => thinking,
]);
exports_of!(thinker, "wheelhouse:sim/thinker", "What a guest of kind `thinker` exports.", [
    "wheelhouse:sim/types" => types,
    "wheelhouse:sim/log" => log,
    "wheelhouse:sim/clock" => clock,
    "wheelhouse:sim/random" => random,
    "wheelhouse:sim/entities" => entities,
    "wheelhouse:sim/kv" => kv,
    "wheelhouse:sim/metrics" => metrics,
    "wheelhouse:sim/thinking" => thinking,
]);
exports_of!(step_task, "wheelhouse:sim/step-task", "What a guest of kind `step-task` exports.", [
    "wheelhouse:sim/types" => types,
    "wheelhouse:sim/log" => log,
    "wheelhouse:sim/clock" => clock,
    "wheelhouse:sim/random" => random,
    "wheelhouse:sim/entities" => entities,
    "wheelhouse:sim/kv" => kv,
    "wheelhouse:sim/metrics" => metrics,
    "wheelhouse:sim/stepping" => stepping,
]);

/// What a guest of kind `job` exports. Its calls are suspended and resumed, so they are futures.
pub mod job {
    wasmtime::component::bindgen!({
        path: "../wit",
        world: "wheelhouse:sim/job",
        exports: { default: async },
        with: {
            "wheelhouse:sim/log": super::sim::log,
            "wheelhouse:sim/clock": super::sim::clock,
            "wheelhouse:sim/random": super::sim::random,
            "wheelhouse:sim/metrics": super::sim::metrics,
        },
    });
}
