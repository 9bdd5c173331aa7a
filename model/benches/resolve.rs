//! How long a fleet takes to resolve, by the number of its requirements.
//!
//! ```sh
//! cargo bench -p provisor-model --bench resolve
//! ```
//!
//! Ten components on each node, each with a requirement over the mesh that two components answer, pinned for every
//! node. Reading the files is not measured. The time is that of the processor, from Linux's `schedstat`, so that other work of
//! the machine does not count. The slope is the exponent of the growth between two sizes: 1 is linear.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::disallowed_methods, reason = "a benchmark reads its processor time")]

use std::fmt::Write as _;
use std::time::Duration;

use provisor_model::{FleetFiles, Model, load, resolve};

const COMPONENTS: usize = 10;
const PROVISIONS: usize = 100;

fn main() {
    let mut last: Option<(usize, Duration)> = None;
    println!(
        "{:>8} {:>13} {:>12} {:>6}",
        "nodes", "requirements", "resolve", "slope"
    );
    for nodes in [100, 1_000, 10_000] {
        let model = model(nodes);
        let time = best_of(5, &model);
        let requirements = nodes * COMPONENTS;
        let slope = last.map_or("".to_owned(), |(before, earlier)| {
            let growth = time.as_secs_f64() / earlier.as_secs_f64();
            let larger = requirements as f64 / before as f64;
            format!("{:.2}", growth.ln() / larger.ln())
        });
        println!(
            "{nodes:>8} {requirements:>13} {:>9.1} ms {slope:>6}",
            time.as_secs_f64() * 1e3
        );
        last = Some((requirements, time));
    }
}

fn best_of(times: usize, model: &Model) -> Duration {
    let once = |_| {
        let start = on_processor();
        let resolution = resolve(model).map_err(|errors| errors.len());
        let time = on_processor() - start;
        assert!(resolution.is_ok(), "{resolution:?}");
        time
    };
    (0..times).map(once).min().unwrap_or_default()
}

/// How long this thread has run so far.
fn on_processor() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|number| number.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or_default())
}

/// Two providers of each provision on nodes of their own; a pin for each provision of each node.
fn model(nodes: usize) -> Model {
    let mut fleet =
        "name = \"bench\"\nnetworks.mesh.cidr = \"10.0.0.0/8\"\nenvironments.e = {}\n[groups.g]\n\
                     environment = \"e\"\n"
            .to_owned();
    let mut pins = String::new();
    let mut files = FleetFiles::default();
    let mut node = |index: usize, name: &str, assigned: &str| {
        let address = format!("10.{}.{}.{}", index >> 16, (index >> 8) & 255, index & 255);
        let _infallible = write!(
            fleet,
            "[groups.g.nodes.{name}]\naddress = \"{address}\"\nnetworks.mesh = \"{address}\"\ncomponents = [{assigned}]\n"
        );
    };
    for provider in 0..2 * PROVISIONS {
        let (component, provision) = (format!("provider{provider}"), provider / 2);
        let text = format!(
            "provides = [{{ name = \"p{provision}\", scope = \"mesh\", serves = {{ port = 1 }}, grants = \"role\" }}]\n"
        );
        files.0.insert(format!("components/{component}.toml"), text);
        node(
            provider,
            &format!("server{provider}"),
            &format!("\"{component}\""),
        );
    }
    for provision in 0..PROVISIONS {
        let text =
            format!("requires = [\"p{provision}\"]\nbinds.p{provision} = \"/etc/p{provision}.json\"\n");
        files
            .0
            .insert(format!("components/consumer{provision}.toml"), text);
    }
    for index in 0..nodes {
        let of_node = (0..COMPONENTS).map(|nth| (index + nth * 7) % PROVISIONS);
        let assigned: Vec<_> = of_node.clone().map(|it| format!("\"consumer{it}\"")).collect();
        let name = format!("node{index}");
        node(2 * PROVISIONS + index, &name, &assigned.join(", "));
        let _infallible = writeln!(pins, "[{name}]");
        for provision in of_node {
            let provider = 2 * provision + index % 2;
            let _infallible = writeln!(
                pins,
                "p{provision} = {{ node = \"server{provider}\", component = \"provider{provider}\" }}"
            );
        }
    }
    files.0.insert("fleet.toml".to_owned(), fleet);
    files.0.insert("pins.toml".to_owned(), pins);
    match load(&files) {
        Ok(loaded) => loaded.model,
        Err(errors) => panic!("{:?}", errors.first()),
    }
}
