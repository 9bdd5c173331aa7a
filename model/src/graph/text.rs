//! Graphs as text: DOT for Graphviz, and mermaid. Names are ASCII without quotes, so that they need no escapes; they
//! are quoted all the same.

use std::fmt::Write as _;

use super::{Edge, Graph, Machine, Target};
use crate::node_plan::End;

impl Graph {
    /// In Graphviz's language. A machine is a cluster; what is refused leads to a red point.
    pub fn dot(&self) -> String {
        let mut out = "digraph fleet {\n  rankdir=LR;\n  node [shape=box];\n".to_owned();
        for Machine {
            name,
            group,
            components,
        } in &self.nodes
        {
            line(&mut out, format_args!("  subgraph \"cluster_{name}\" {{"));
            line(&mut out, format_args!("    label=\"{name} ({group})\";"));
            if components.is_empty() {
                line(&mut out, format_args!("    \"{name}\" [style=invis];"));
            }
            for component in components {
                line(
                    &mut out,
                    format_args!("    \"{name}/{component}\" [label=\"{component}\"];"),
                );
            }
            line(&mut out, format_args!("  }}"));
        }
        for (
            index,
            Edge {
                consumer,
                provision,
                to,
            },
        ) in self.edges.iter().enumerate()
        {
            match to {
                Target::Providers(providers) => {
                    for provider in providers {
                        line(
                            &mut out,
                            format_args!("  \"{consumer}\" -> \"{provider}\" [label=\"{provision}\"];"),
                        );
                    }
                }
                Target::Outside(route) => {
                    line(
                        &mut out,
                        format_args!("  \"outside {index}\" [label=\"{route}\", shape=oval];"),
                    );
                    line(
                        &mut out,
                        format_args!("  \"{consumer}\" -> \"outside {index}\" [label=\"{provision}\"];"),
                    );
                }
                Target::Unresolved(_) => {
                    line(
                        &mut out,
                        format_args!("  \"unresolved {index}\" [label=\"?\", color=red, shape=circle];"),
                    );
                    line(
                        &mut out,
                        format_args!(
                            "  \"{consumer}\" -> \"unresolved {index}\" [label=\"{provision}\", color=red, style=dashed];"
                        ),
                    );
                }
            }
        }
        out.push_str("}\n");
        out
    }

    /// In mermaid's language, for Markdown. What is refused leads to a question mark, by a dotted arrow.
    pub fn mermaid(&self) -> String {
        let mut out = "flowchart LR\n".to_owned();
        for Machine {
            name,
            group,
            components,
        } in &self.nodes
        {
            line(
                &mut out,
                format_args!("  subgraph \"{name}\" [\"{name} ({group})\"]"),
            );
            for component in components {
                line(
                    &mut out,
                    format_args!("    {}[\"{component}\"]", id(name, component)),
                );
            }
            line(&mut out, format_args!("  end"));
        }
        for (
            index,
            Edge {
                consumer,
                provision,
                to,
            },
        ) in self.edges.iter().enumerate()
        {
            let End { node, component } = consumer;
            let from = id(node, component);
            match to {
                Target::Providers(providers) => {
                    for End { node, component } in providers {
                        line(
                            &mut out,
                            format_args!("  {from} -->|{provision}| {}", id(node, component)),
                        );
                    }
                }
                Target::Outside(route) => {
                    line(
                        &mut out,
                        format_args!("  {from} -->|{provision}| outside{index}([\"{route}\"])"),
                    );
                }
                Target::Unresolved(_) => {
                    line(
                        &mut out,
                        format_args!("  {from} -.->|{provision}| unresolved{index}((\"?\"))"),
                    );
                }
            }
        }
        out
    }
}

fn line(out: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _infallible = writeln!(out, "{line}");
}

/// Mermaid reads `-` in places, and words such as `end`; neither name has a `_`, so that no two ends share an id.
fn id(node: &str, component: &str) -> String {
    format!(
        "n_{}__{}",
        node.replace('-', "_h_"),
        component.replace('-', "_h_")
    )
}
