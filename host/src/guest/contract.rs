//! The WIT package as Rust types: the interfaces that guests import, once, and for each kind of guest the exports that the
//! host calls. Everything here is generated from `wit/`; no file beside it spells a type of the contract out.

/// The interfaces that guests may import. `imports/` implements those of loop guests, a file each, and the room `service`
/// those of services.
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
                import wheelhouse:sim/requests@0.1.0;
                import wheelhouse:sim/groups@0.1.0;
                import wheelhouse:sim/shared@0.1.0;
                import wheelhouse:sim/actor@0.1.0;
                import wheelhouse:sim/calls@0.1.0;
                import wheelhouse:sim/async-calls@0.1.0;
                import wheelhouse:sim/sockets@0.1.0;
                import wheelhouse:sim/bulk@0.1.0;
                import wheelhouse:sim/gate@0.1.0;
                import wheelhouse:sim/metrics@0.1.0;
                import wheelhouse:sim/thinking@0.1.0;
                import wheelhouse:sim/stepping@0.1.0;
            }
        ",
        world: "wheelhouse:host/imports",
        imports: {
            "wheelhouse:sim/calls": async | trappable,
            "wheelhouse:sim/async-calls": async | store | trappable,
            default: trappable,
        },
        additional_derives: [PartialEq],
    });
}

pub use imports::wheelhouse::sim;

/// One module of exports, whose interface types are those of [`imports`]. With `suspended` its calls are suspended and
/// resumed, so that they are futures.
macro_rules! exports_of {
    ($module:ident, $world:literal, $what:literal, [$($interfaces:tt)*]) => {
        exports_of!(@ $module, $world, $what, [], [$($interfaces)*]);
    };
    (suspended $module:ident, $world:literal, $what:literal, [$($interfaces:tt)*]) => {
        exports_of!(@ $module, $world, $what, [exports: { default: async },], [$($interfaces)*]);
    };
    (@ $module:ident, $world:literal, $what:literal, [$($options:tt)*],
     [$($interface:literal => $path:ident),* $(,)?]) => {
        #[doc = $what]
        pub mod $module {
            wasmtime::component::bindgen!({
                path: "../wit",
                world: $world,
                $($options)*
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
    "wheelhouse:sim/requests" => requests,
    "wheelhouse:sim/groups" => groups,
    "wheelhouse:sim/shared" => shared,
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

exports_of!(suspended job, "wheelhouse:sim/job", "What a guest of kind `job` exports.", [
    "wheelhouse:sim/log" => log,
    "wheelhouse:sim/clock" => clock,
    "wheelhouse:sim/random" => random,
    "wheelhouse:sim/metrics" => metrics,
]);
// `deliver`, which one may have besides, is looked for by itself.
exports_of!(suspended service, "wheelhouse:sim/service", "What a plain service exports.", [
    "wheelhouse:sim/types" => types,
    "wheelhouse:sim/log" => log,
    "wheelhouse:sim/clock" => clock,
    "wheelhouse:sim/random" => random,
    "wheelhouse:sim/services" => services,
    "wheelhouse:sim/groups" => groups,
    "wheelhouse:sim/shared" => shared,
    "wheelhouse:sim/actor" => actor,
    "wheelhouse:sim/calls" => calls,
    "wheelhouse:sim/gate" => gate,
    "wheelhouse:sim/sockets" => sockets,
    "wheelhouse:sim/metrics" => metrics,
]);
exports_of!(suspended async_service, "wheelhouse:sim/async-service", "What an async service exports.", [
    "wheelhouse:sim/types" => types,
    "wheelhouse:sim/log" => log,
    "wheelhouse:sim/clock" => clock,
    "wheelhouse:sim/random" => random,
    "wheelhouse:sim/services" => services,
    "wheelhouse:sim/groups" => groups,
    "wheelhouse:sim/shared" => shared,
    "wheelhouse:sim/actor" => actor,
    "wheelhouse:sim/async-calls" => async_calls,
    "wheelhouse:sim/gate" => gate,
    "wheelhouse:sim/sockets" => sockets,
    "wheelhouse:sim/metrics" => metrics,
]);
