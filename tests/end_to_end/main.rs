//! The end-to-end tests: the real program, real components, real sockets. A module for each thing that can go wrong.

mod broken_guest_files;
mod broken_stores;
mod client_command;
mod clients;
mod crash;
mod durability;
mod endless_jobs;
mod events;
mod failing_events;
mod hostile_games;
mod hostile_services;
mod hostile_starts;
mod hostile_tasks;
mod hostile_thinkers;
mod idle;
mod lobby;
mod meadow;
mod objects;
mod operating_services;
mod restarts;
mod starts;
mod strangers;
mod swaps;
mod swaps_under_load;
mod transactions;
mod wasi;
