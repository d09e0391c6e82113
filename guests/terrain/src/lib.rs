//! A job of Meadow: makes a square map of terrain from noise and tells what is on it. Written straight through, with no
//! thought of frames; at large sizes it takes seconds, which the host spreads over many frames.
//!
//! Arguments: `SEED SIZE` as text, the size from 16 to 4096 tiles. Result: one line of text.

mod noise;

use noise::Noise;
use wheelhouse_guest::prelude::*;

/// The largest side: its heights take a quarter of the memory that a guest has by default.
const MAX_SIZE: usize = 4096;
const MIN_SIZE: usize = 16;

/// How often the slopes are worn down.
const EROSION_PASSES: usize = 8;

/// The length of the largest hills in tiles, and how many times smaller ones are laid over them.
const HILL_TILES: f32 = 128.0;
const OCTAVES: u32 = 6;

/// What grows at a height, as shares of the way from the lowest tile to the highest.
const BANDS: [(&str, u8); 5] = [("water", 90), ("sand", 100), ("grass", 150), ("forest", 195), ("rock", 255)];

wheelhouse_guest::job!(run);

fn run(arguments: Vec<u8>) -> Result<Vec<u8>, Refusal> {
    let (seed, size) = parse(std::str::from_utf8(&arguments)?)?;
    let mut heights = raise(seed, size);
    for _ in 0..EROSION_PASSES {
        erode(&mut heights, size);
    }
    Ok(summary(seed, size, &heights).into_bytes())
}

fn parse(arguments: &str) -> Result<(u64, usize), Refusal> {
    let Some((seed, size)) = arguments.trim().split_once(' ') else { refuse!("terrain takes SEED SIZE") };
    let (seed, size) = (seed.parse()?, size.trim().parse()?);
    if !(MIN_SIZE..=MAX_SIZE).contains(&size) {
        refuse!("a map's side is from {MIN_SIZE} to {MAX_SIZE} tiles, not {size}");
    }
    Ok((seed, size))
}

/// The heights of all tiles, row by row, from 0 to 255: hills, and smaller hills on them.
fn raise(seed: u64, size: usize) -> Vec<u8> {
    let noise = Noise::new(seed);
    let mut heights = Vec::with_capacity(size * size);
    for y in 0..size {
        for x in 0..size {
            let height = noise.layered(x as f32 / HILL_TILES, y as f32 / HILL_TILES, OCTAVES);
            heights.push((height * 255.0) as u8);
        }
    }
    heights
}

/// Wears every tile down towards the mean of its four neighbours, the border excepted.
fn erode(heights: &mut [u8], size: usize) {
    for y in 1..size - 1 {
        for x in 1..size - 1 {
            let here = y * size + x;
            let around = [here - 1, here + 1, here - size, here + size];
            let sum: u32 = around.iter().map(|tile| u32::from(heights[*tile])).sum();
            heights[here] = ((u32::from(heights[here]) * 4 + sum) / 8) as u8;
        }
    }
}

/// One line about the map, which begins with what it was made from and ends with a checksum.
fn summary(seed: u64, size: usize, heights: &[u8]) -> String {
    let (lowest, highest) = (*heights.iter().min().unwrap_or(&0), *heights.iter().max().unwrap_or(&0));
    let span = u32::from(highest - lowest).max(1);
    let mut counts = [0_usize; BANDS.len()];
    let mut checksum = 0xCBF2_9CE4_8422_2325_u64; // FNV-1a
    for height in heights {
        let share = (u32::from(height - lowest) * 255 / span) as u8;
        counts[BANDS.iter().position(|(_, upper)| share <= *upper).unwrap_or(BANDS.len() - 1)] += 1;
        checksum = (checksum ^ u64::from(*height)).wrapping_mul(0x0100_0000_01B3);
    }
    let shares: Vec<_> = BANDS
        .iter()
        .zip(counts)
        .map(|((name, _), count)| format!("{name} {:.1}%", count as f64 * 100.0 / heights.len() as f64))
        .collect();
    format!("seed {seed}, {size} x {size} tiles: {}, checksum {checksum:016x}", shares.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(arguments: &str) -> Result<String, Refusal> {
        run(arguments.as_bytes().to_vec()).map(|line| String::from_utf8(line).unwrap())
    }

    #[test]
    fn equal_seeds_make_equal_maps_and_others_do_not() {
        let first = line("7 256").unwrap();
        assert_eq!(first, line("7 256").unwrap());
        assert_ne!(first.split("checksum").nth(1), line("8 256").unwrap().split("checksum").nth(1));
    }

    #[test]
    fn a_map_has_some_of_everything() {
        let line = line("7 512").unwrap();
        for (name, _) in BANDS {
            let share = line.split(&format!("{name} ")).nth(1).unwrap().split('%').next().unwrap();
            assert!(share.parse::<f64>().unwrap() > 0.5, "{line}");
        }
    }

    #[test]
    fn wrong_arguments_are_refused_by_name() {
        assert!(line("7").unwrap_err().message().contains("SEED SIZE"));
        assert!(line("7 9").unwrap_err().message().contains("not 9"));
        assert!(line("7 100000").unwrap_err().message().contains("4096"));
        assert!(line("seven 64").is_err());
        assert!(run(vec![0xff]).is_err());
    }

    #[test]
    fn erosion_makes_slopes_gentler() {
        let mut heights = raise(3, 128);
        let roughness =
            |heights: &[u8]| heights.windows(2).map(|pair| u64::from(pair[0].abs_diff(pair[1]))).sum::<u64>();
        let before = roughness(&heights);
        erode(&mut heights, 128);
        assert!(roughness(&heights) < before);
    }
}
