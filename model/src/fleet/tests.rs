use super::*;
use crate::testing::{files, two_of_everything};

#[test]
fn dump() {
    let r = two_of_everything().resolution();
    println!("{}", serde_json::to_string_pretty(&r.plans(&Default::default())).unwrap());
    println!("{:#?}", r.answers());
    println!("{}", files([("fleet.toml", "nme = 'x'\n[a.b]\n[a.b]\nx = 1\nx = 2\n y = = 3\nz = '''\n"), ("components/a.toml", "requires = ['database'\nx = 1")]).load_errors());
    println!("{}", files([("fleet.toml", "nme = 'x'\n[groups.a]\n environment=1\n [groups.a.nodes.b]\n port = 0\n")]).load_errors());
}
