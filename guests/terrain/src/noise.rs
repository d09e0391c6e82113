//! Value noise: a random height at every whole point, blended smoothly between them, in layers of ever smaller hills.

/// The noise of one seed.
pub struct Noise {
    seed: u64,
}

impl Noise {
    /// The noise of a seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The sum of `octaves` layers, each of half the size and half the height of the one before. From 0 to 1.
    pub fn layered(&self, x: f32, y: f32, octaves: u32) -> f32 {
        let (mut sum, mut scale, mut share, mut total) = (0.0, 1.0, 1.0, 0.0);
        for octave in 0..octaves {
            sum += self.at(x * scale, y * scale, octave) * share;
            total += share;
            scale *= 2.0;
            share *= 0.5;
        }
        sum / total
    }

    /// One layer at a point that is not negative. From 0 to 1.
    fn at(&self, x: f32, y: f32, layer: u32) -> f32 {
        let (left, top) = (x as u32, y as u32);
        let (across, down) = (smooth(x - left as f32), smooth(y - top as f32));
        let corner = |dx, dy| self.corner(left + dx, top + dy, layer);
        let upper = blend(corner(0, 0), corner(1, 0), across);
        let lower = blend(corner(0, 1), corner(1, 1), across);
        blend(upper, lower, down)
    }

    /// The random height of a whole point: three rounds of a multiply-and-shift mix over its coordinates and the seed.
    fn corner(&self, x: u32, y: u32, layer: u32) -> f32 {
        let mut mixed = self.seed ^ (u64::from(layer) << 56);
        for part in [x, y, 0] {
            mixed = (mixed ^ u64::from(part)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            mixed ^= mixed >> 32;
        }
        (mixed & 0xFF_FFFF) as f32 / 16_777_215.0
    }
}

/// From 0 to 1 with level ends.
fn smooth(part: f32) -> f32 {
    part * part * (3.0 - 2.0 * part)
}

fn blend(from: f32, to: f32, part: f32) -> f32 {
    from + (to - from) * part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_stays_between_zero_and_one_and_has_no_jumps() {
        let noise = Noise::new(9);
        let heights: Vec<_> = (0..10_000).map(|step| noise.layered(step as f32 * 0.001, 3.7, 6)).collect();
        assert!(heights.iter().all(|height| (0.0..=1.0).contains(height)));
        assert!(heights.windows(2).all(|pair| (pair[0] - pair[1]).abs() < 0.05));
        let (low, high) = heights.iter().fold((1.0_f32, 0.0_f32), |(low, high), h| (low.min(*h), high.max(*h)));
        assert!(high - low > 0.3, "{low} to {high}");
    }
}
