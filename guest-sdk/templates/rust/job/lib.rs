//! Counts the primes below a number, straight through; the host interrupts it by itself.

use wheelhouse_guest::prelude::*;

wheelhouse_guest::job!(count_primes);

fn count_primes(arguments: Vec<u8>) -> Result<Vec<u8>, Refusal> {
    let limit: u32 = std::str::from_utf8(&arguments)?.parse()?;
    Ok((2..limit).filter(|number| is_prime(*number)).count().to_string().into_bytes())
}

fn is_prime(number: u32) -> bool {
    (2..).take_while(|divisor| divisor * divisor <= number).all(|divisor| number % divisor != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_25_primes_below_100() {
        assert_eq!(count_primes(b"100".to_vec()).unwrap(), b"25");
    }
}
