//! Services as they are run, without a host around them: the guests of `tests/guests/`, real threads, and whoever asks them.
//! The guests have to be built first (`wheelhouse guest build tests/guests`).

mod actors;
mod deaths;
mod limits;
mod order;
mod restarts;
mod swaps;
mod waiting;
