//! Integrals of smooth functions.

/// The nodes and weights of Gauss and Legendre on (0, 1): this many of them are exact for polynomials
/// of a degree below twice their number.
pub(super) fn gauss_legendre_nodes(nodes: u32) -> Vec<(f64, f64)> {
    let n = f64::from(nodes);
    let node = |place: u32| {
        // Near the root already; Newton's method squares the error at each step.
        let mut x = (std::f64::consts::PI * (f64::from(place) + 0.75) / (n + 0.5)).cos();
        let mut slope = 1.0;
        for _ in 0..6 {
            let (value, of_value) = legendre_and_slope(nodes, x);
            slope = of_value;
            x -= value / slope;
        }
        (f64::midpoint(1.0, x), 1.0 / ((1.0 - x * x) * slope * slope))
    };
    (0..nodes).map(node).collect()
}

/// The Legendre polynomial of this degree and its slope.
fn legendre_and_slope(degree: u32, x: f64) -> (f64, f64) {
    let (mut before, mut value) = (0.0, 1.0);
    for k in 1..=degree {
        let k = f64::from(k);
        (before, value) = (value, ((2.0 * k - 1.0) * x * value - (k - 1.0) * before) / k);
    }
    (value, f64::from(degree) * (x * value - before) / (x * x - 1.0))
}
