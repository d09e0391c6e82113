;; A job that uses WASI preview 1 as the libraries of C do. The first letter of its arguments says what for:
;; `p` prints a line, `s` sleeps for an hour, `f` looks for files, arguments and environment.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll_oneoff (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_prestat_get" (func $fd_prestat_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $args_sizes_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_sizes_get" (func $environ_sizes_get (param i32 i32) (result i32)))

  (memory (export "memory") 8)
  (data (i32.const 1024) "printed through WASI\n")
  ;; The text as an `iovec`: where it begins, and its length.
  (data (i32.const 1000) "\00\04\00\00" "\15\00\00\00")
  ;; A `subscription` to the monotonic clock (id 1), an hour from now, at 2048; the time stands at its byte 24.
  (data (i32.const 2064) "\01\00\00\00")

  ;; Where the next allocation begins. Nothing is ever freed: an instance runs once.
  (global $free (mut i32) (i32.const 65536))
  (func (export "cabi_realloc") (param $old i32) (param $old_size i32) (param $align i32) (param $size i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $free) (i32.const 15)) (i32.const -16)))
    (global.set $free (i32.add (local.get $at) (local.get $size)))
    (local.get $at))

  ;; One decimal digit at the address.
  (func $digit (param $at i32) (param $number i32)
    (i32.store8 (local.get $at) (i32.add (i32.const 48) (local.get $number))))

  ;; The answer is a `result<list<u8>, string>` at 3000: case, address, length.
  (func (export "run") (param $arguments i32) (param $length i32) (result i32)
    (local $word i32)
    (local.set $word (i32.load8_u (local.get $arguments)))
    (i32.store8 (i32.const 3000) (i32.const 0))
    (i32.store (i32.const 3004) (i32.const 4000))
    (i32.store (i32.const 3008) (i32.const 0))
    (if (i32.eq (local.get $word) (i32.const 112))
      (then (drop (call $fd_write (i32.const 1) (i32.const 1000) (i32.const 1) (i32.const 1016)))))
    (if (i32.eq (local.get $word) (i32.const 115))
      (then
        (i64.store (i32.const 2072) (i64.const 3600000000000))
        (drop (call $poll_oneoff (i32.const 2048) (i32.const 2200) (i32.const 1) (i32.const 2300)))))
    (if (i32.eq (local.get $word) (i32.const 102))
      (then
        (call $digit (i32.const 4000) (call $fd_prestat_get (i32.const 3) (i32.const 1100)))
        (drop (call $args_sizes_get (i32.const 1100) (i32.const 1104)))
        (call $digit (i32.const 4001) (i32.load (i32.const 1100)))
        (drop (call $environ_sizes_get (i32.const 1100) (i32.const 1104)))
        (call $digit (i32.const 4002) (i32.load (i32.const 1100)))
        (i32.store (i32.const 3008) (i32.const 3))))
    (i32.const 3000))
  (func (export "cabi_post_run") (param i32))

  (func (export "wheelhouse:sim/lifecycle@0.1.0#save") (result i32)
    (i64.store (i32.const 3016) (i64.const 0))
    (i32.const 3016))
  (func (export "wheelhouse:sim/lifecycle@0.1.0#restore") (param i32 i32) (result i32)
    (i32.store8 (i32.const 3000) (i32.const 0))
    (i32.const 3000)))
