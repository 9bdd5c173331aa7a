use super::*;
use rstest::rstest;

fn parse(text: &str) -> StateAddress {
    StateAddress::parse(text).unwrap()
}

#[rstest]
#[case::a_trailing_slash("http://host:8080/state/a/", "http://host:8080/state/a")]
#[case::several_slashes("http://host/state/a//", "http://host/state/a")]
#[case::the_default_http_port("http://host:80/s", "http://host/s")]
#[case::the_default_https_port("https://host:443/s", "https://host/s")]
#[case::another_schemes_port("https://host:80/s", "https://host:80/s")]
#[case::case_of_scheme_and_host("HTTP://Host.Example/State", "http://host.example/State")]
#[case::a_fragment("http://host/s#top", "http://host/s")]
#[case::an_empty_query("http://host/s?", "http://host/s")]
#[case::a_query_that_selects("http://host/?type=git&state=a", "http://host/?type=git&state=a")]
#[case::no_path("http://host", "http://host/")]
#[case::ipv6("http://[2001:DB8::1]:80/s", "http://[2001:db8::1]/s")]
#[case::userinfo("http://user:pass@host/s", "http://host/s")]
#[case::spaces_around(" http://host/s\n", "http://host/s")]
fn an_address_is_normalised(#[case] given: &str, #[case] url: &str) {
    assert_eq!(parse(given).url(), url);
}

#[rstest]
#[case::another_scheme("ftp://host/s")]
#[case::a_file("file:///tmp/s")]
fn other_schemes_are_refused(#[case] given: &str) {
    assert!(matches!(
        StateAddress::parse(given),
        Err(AddressError::NotHttp { .. })
    ));
}

#[rstest]
#[case::no_scheme("host/s")]
#[case::nothing("")]
#[case::no_host("http:///s")]
#[case::a_space("http://ho st/s")]
fn what_is_no_url_is_refused(#[case] given: &str) {
    assert!(matches!(
        StateAddress::parse(given),
        Err(AddressError::Malformed { .. })
    ));
}

#[test]
fn an_error_shows_no_password() {
    for given in [
        "ftp://u:canary@host/s",
        "http://u:canary@ho st/s",
        "u:canary@host",
    ] {
        assert!(
            !StateAddress::parse(given)
                .unwrap_err()
                .to_string()
                .contains("canary")
        );
    }
}

#[test]
fn display_and_debug_show_no_secret() {
    let address = parse("http://user:canary@host/s?state=a&access_Token=canary");
    assert_eq!(address.to_string(), "http://host/s?state=a&access_Token=xxxxx");
    assert!(!format!("{address:?} {:?}", address.userinfo()).contains("canary"));
    assert_eq!(address.url(), "http://host/s?state=a&access_Token=canary");
}

#[test]
fn userinfo_is_decoded() {
    let address = parse("http://user%40corp:a%2Fb@host/s");
    assert_eq!(
        address.userinfo(),
        Some(&Userinfo {
            username: "user@corp".into(),
            password: "a/b".into()
        })
    );
}

#[test]
fn a_lock_id_joins_an_existing_query() {
    assert_eq!(parse("http://host/s").url_with_lock("1"), "http://host/s?ID=1");
    assert_eq!(
        parse("http://host/s?state=a").url_with_lock("1"),
        "http://host/s?state=a&ID=1"
    );
}

#[test]
fn a_derived_address_brackets_ipv6() {
    let derived = |address| StateAddress::derived(address, 8080, "prod").unwrap().url();
    assert_eq!(derived("192.0.2.1"), "http://192.0.2.1:8080/state/prod");
    assert_eq!(derived("2001:db8::1"), "http://[2001:db8::1]:8080/state/prod");
}

#[test]
fn a_key_is_a_file_name_that_reads_like_the_address() {
    assert_eq!(
        parse("http://192.0.2.1:8080/state/prod").key(),
        "http_3A_2F_2F192.0.2.1_3A8080_2Fstate_2Fprod"
    );
}

#[test]
fn secrets_do_not_change_a_key_and_selectors_do() {
    let key = |text| parse(text).key();
    assert_eq!(key("http://a:b@host/s"), key("http://host/s"));
    assert_eq!(key("http://host/s?token=1"), key("http://host/s?token=2"));
    assert_ne!(key("http://host/s?state=1"), key("http://host/s?state=2"));
    assert_ne!(key("http://host/s"), key("https://host/s"));
    assert_ne!(key("http://host/a_2Fb"), key("http://host/a/b"));
}

#[test]
fn long_addresses_keep_short_keys_apart() {
    let long = |end: &str| parse(&format!("http://host/{}{end}", "a".repeat(300))).key();
    assert!(long("b").len() <= KEY_CAP + 25);
    assert_ne!(long("b"), long("c"));
    let plain = &parse(&format!("http://host/{}", "a".repeat(KEY_CAP))).key()[..KEY_CAP];
    assert!(!plain.contains('-'));
}

proptest::proptest! {
    #[test]
    fn different_paths_have_different_keys(one in "[a-zA-Z0-9._~-]{1,60}", two in "[a-zA-Z0-9._~-]{1,60}") {
        let key = |path: &str| parse(&format!("http://host/{path}")).key();
        proptest::prop_assert_eq!(one == two, key(&one) == key(&two));
    }

    #[test]
    fn parsing_what_was_normalised_changes_nothing(path in "(/[a-z0-9._-]{1,8}){0,4}/?", port in 1u16..) {
        let address = parse(&format!("http://host:{port}{path}"));
        proptest::prop_assert_eq!(parse(&address.url()), address);
    }
}
