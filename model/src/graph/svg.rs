//! Graphs as SVG, with a layout of our own: a column a group, a box a machine, a line a component.
//!
//! Layout crates place boxes by solving for short edges, and take their time or give up on fleets of thousands of
//! machines. This one is a list in the order of the names: it is done in one pass, it is the same every time, and a person
//! finds a machine where they expect it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Edge, Graph, Machine, Target};

const ROW: usize = 22;
const BOX: usize = 220;
const GAP: usize = 160;
const MARGIN: usize = 40;

/// Where the line of a component is: the left edge of its box, and the middle of the line.
type Spots<'a> = BTreeMap<(&'a str, &'a str), (usize, usize)>;

impl Graph {
    /// A picture of its own, without scripts or fonts. What is refused is a red dashed line that ends in a question mark;
    /// its title says why.
    pub fn svg(&self) -> String {
        let mut boxes = String::new();
        let mut spots = Spots::new();
        let (mut columns, mut lowest) = (0, 0);
        for (column, (group, machines)) in self.groups().into_iter().enumerate() {
            let left = MARGIN + column * (BOX + GAP);
            let mut top = MARGIN + ROW;
            text(&mut boxes, left, MARGIN, group, "font-weight=\"bold\"");
            for machine in machines {
                top = draw(&mut boxes, &mut spots, machine, (left, top)) + ROW;
            }
            columns = column + 1;
            lowest = lowest.max(top);
        }
        let mut edges = String::new();
        for edge in &self.edges {
            self.edge(&mut edges, &spots, edge);
        }
        let (width, height) = (2 * MARGIN + columns * (BOX + GAP), lowest + MARGIN);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" \
             font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{boxes}{edges}</svg>\n"
        )
    }

    fn groups(&self) -> BTreeMap<&str, Vec<&Machine>> {
        let mut groups: BTreeMap<&str, Vec<&Machine>> = BTreeMap::new();
        for machine in &self.nodes {
            groups.entry(&machine.group).or_default().push(machine);
        }
        groups
    }

    fn edge(&self, out: &mut String, spots: &Spots<'_>, edge: &Edge) {
        let spot = |node: &str, component: &str| spots.get(&(node, component)).copied();
        let Some((left, y)) = spot(&edge.consumer.node, &edge.consumer.component) else {
            return;
        };
        let from = (left + BOX, y);
        match &edge.to {
            Target::Providers(providers) => {
                for provider in providers {
                    if let Some((left, y)) = spot(&provider.node, &provider.component) {
                        // Within a column, the line goes around on the right.
                        let to = if left + BOX == from.0 {
                            (left + BOX, y)
                        } else {
                            (left, y)
                        };
                        curve(
                            out,
                            from,
                            to,
                            "stroke=\"#446\"",
                            &format!("{}: {}", edge.consumer, edge.provision),
                        );
                    }
                }
            }
            Target::Outside(route) => {
                let to = (from.0 + GAP / 2, from.1);
                curve(
                    out,
                    from,
                    to,
                    "stroke=\"#464\"",
                    &format!("{}: {}", edge.consumer, edge.provision),
                );
                text(out, to.0, to.1, route, "fill=\"#464\"");
            }
            Target::Unresolved(why) => {
                let to = (from.0 + GAP / 2, from.1);
                curve(out, from, to, "stroke=\"#c00\" stroke-dasharray=\"4\"", why);
                text(out, to.0, to.1, &format!("? {}", edge.provision), "fill=\"#c00\"");
            }
        }
    }
}

/// Draws a machine, and returns its lower edge.
fn draw<'a>(
    out: &mut String,
    spots: &mut Spots<'a>,
    machine: &'a Machine,
    (left, top): (usize, usize),
) -> usize {
    let bottom = top + ROW * (machine.components.len() + 1);
    let height = bottom - top;
    let _infallible = writeln!(
        out,
        "<rect x=\"{left}\" y=\"{top}\" width=\"{BOX}\" height=\"{height}\" fill=\"#f4f4f8\" stroke=\"#446\"/>"
    );
    text(
        out,
        left + 6,
        top + ROW - 7,
        &machine.name,
        "font-weight=\"bold\"",
    );
    for (nth, component) in machine.components.iter().enumerate() {
        let base = top + ROW * (nth + 2) - 7;
        text(out, left + 14, base, component, "");
        spots.insert((machine.name.as_str(), component.as_str()), (left, base - 4));
    }
    bottom
}

fn curve(out: &mut String, from: (usize, usize), to: (usize, usize), style: &str, title: &str) {
    let bend = from.0 + GAP / 2;
    let before = if to.0 == from.0 {
        bend
    } else {
        to.0.saturating_sub(GAP / 2)
    };
    let _infallible = writeln!(
        out,
        "<path d=\"M {} {} C {bend} {} {before} {} {} {}\" fill=\"none\" {style}><title>{}</title></path>",
        from.0,
        from.1,
        from.1,
        to.1,
        to.0,
        to.1,
        escaped(title)
    );
}

fn text(out: &mut String, x: usize, y: usize, text: &str, style: &str) {
    let _infallible = writeln!(out, "<text x=\"{x}\" y=\"{y}\" {style}>{}</text>", escaped(text));
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
