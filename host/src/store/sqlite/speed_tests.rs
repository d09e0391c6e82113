use super::scratch::*;
use super::*;
use crate::store::*;
use std::time::Instant;

#[test]
#[ignore]
fn speed() {
    let directory = tempfile::tempdir_in(std::env::var("SPEED_DIR").unwrap_or("/tmp".into())).unwrap();
    let n: u64 = std::env::var("SPEED_N").ok().and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let due = |s: u64| 1_000_000 + (s.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) % 86_400_000;
    let order = std::env::var("SPEED_ORDER").unwrap_or("raw,ours".into());
    for which in order.split(',') {
        if which == "raw" {
            let raw = connection_raw(&directory.path().join("raw.db"));
            let began = Instant::now();
            for batch in 0..n / 1000 {
                raw.execute_batch("BEGIN IMMEDIATE").unwrap();
                {
                    let mut st =
                        raw.prepare_cached("INSERT INTO events VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)").unwrap();
                    for i in 0..1000 {
                        let s = batch * 1000 + i + 1;
                        st.execute(rusqlite::params![
                            s as i64,
                            1,
                            "ripen",
                            &[1u8, 2, 3][..],
                            due(s) as i64,
                            due(s) as i64,
                            None::<i64>,
                            None::<i64>,
                            0,
                            0,
                            None::<String>
                        ])
                        .unwrap();
                    }
                }
                raw.execute_batch("COMMIT").unwrap();
            }
            let t = began.elapsed();
            println!("raw {n}: {:.0} rows/s", n as f64 / t.as_secs_f64());
        } else {
            let store = open(directory.path());
            let mut writer = store.writer(vec![]).unwrap();
            let mut commits = vec![];
            let mut upkeeps = vec![];
            let mut spent = std::time::Duration::ZERO;
            for number in 0..n / 1000 {
                let events = put((0..1000).map(|i| {
                    let s = number * 1000 + i + 1;
                    event(s, due(s))
                }));
                let batch =
                    Batch { number: number + 1, events, next_sequence: Some(number * 1000 + 1001), ..Batch::default() };
                let began = Instant::now();
                writer.commit(&[batch]).unwrap();
                commits.push(began.elapsed());
                let up = Instant::now();
                writer.upkeep(true).unwrap();
                upkeeps.push(up.elapsed());
                spent += began.elapsed();
            }
            println!("ours {n}: {:.0} rows/s", n as f64 / spent.as_secs_f64());
            commits.sort();
            upkeeps.sort();
            let q = |v: &Vec<std::time::Duration>, q: f64| v[((v.len() - 1) as f64 * q) as usize];
            println!(
                "commit p50 {:?} p99 {:?} max {:?}; upkeep p50 {:?} p99 {:?} max {:?}",
                q(&commits, 0.5),
                q(&commits, 0.99),
                q(&commits, 1.0),
                q(&upkeeps, 0.5),
                q(&upkeeps, 0.99),
                q(&upkeeps, 1.0)
            );
            let mut small = vec![];
            let mut ups = vec![];
            for i in 0..2000 {
                let b = numbered(n + 10 + i);
                let began = Instant::now();
                writer.commit(&[b]).unwrap();
                small.push(began.elapsed());
                let began = Instant::now();
                writer.upkeep(false).unwrap();
                ups.push(began.elapsed());
            }
            small.sort();
            ups.sort();
            println!(
                "small commit p50 {:?} p99 {:?} max {:?}; upkeep max {:?}",
                q(&small, 0.5),
                q(&small, 0.99),
                q(&small, 1.0),
                q(&ups, 1.0)
            );
            drop((writer, store));
            let began = Instant::now();
            let store = open(directory.path());
            let o = began.elapsed();
            store.load().unwrap();
            let l = began.elapsed();
            let w = store.writer(vec![]).unwrap();
            let wt = began.elapsed();
            let mut reader = store.reader().unwrap();
            println!("open {o:?} load {l:?} writer {wt:?} reader {:?}", began.elapsed());
            let began = Instant::now();
            let mut after = None;
            for _ in 0..20 {
                let page =
                    reader.claim(&Claim { guest: "rules".into(), after, until: Place::LAST, limit: 1000 }).unwrap();
                after = page.last().map(Event::place);
            }
            println!("claim page of 1000: {:?}", began.elapsed() / 20);
            w.close().unwrap();
            println!(
                "rss {}",
                std::fs::read_to_string("/proc/self/status")
                    .unwrap()
                    .lines()
                    .filter(|l| l.starts_with("VmRSS") || l.starts_with("VmHWM"))
                    .collect::<Vec<_>>()
                    .join(" ")
            );
            println!("size {}", std::fs::metadata(directory.path().join("world.db")).unwrap().len());
        }
    }
}

fn connection_raw(path: &Path) -> Connection {
    let mut c = Connection::open(path).unwrap();
    c.execute_batch("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-8192;").unwrap();
    schema::lay_out(&mut c, 2).unwrap();
    if std::env::var("SPEED_ONEINDEX").is_ok() {
        c.execute_batch("DROP INDEX events_regular; DROP INDEX events_delayed_by_place; DROP INDEX events_delayed_by_id; DROP INDEX events_parked; CREATE INDEX e ON events (guest, due_ms);").unwrap();
    }
    c
}
