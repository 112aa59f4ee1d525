//! Where a call came from.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;
use ipnet::IpNet;

const FORWARDED_FOR: &str = "x-forwarded-for";

/// The address of whoever called. What `X-Forwarded-For` says is believed only from a trusted proxy, and
/// from the right: the first address there that is none of a trusted proxy. What stands left of it was
/// written by the client itself.
pub(super) fn client(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let is_trusted = |address: &IpAddr| trusted.iter().any(|net| net.contains(address));
    let mut client = peer.to_canonical();
    if !is_trusted(&client) {
        return client;
    }
    let values = headers.get_all(FORWARDED_FOR).iter().rev();
    let hops = values.flat_map(|value| value.to_str().unwrap_or_default().rsplit(','));
    for hop in hops {
        let Some(address) = read(hop.trim()) else { break };
        client = address;
        if !is_trusted(&client) {
            break;
        }
    }
    client
}

/// With or without a port, as proxies write it.
fn read(hop: &str) -> Option<IpAddr> {
    let bare = hop.strip_prefix('[').and_then(|hop| hop.strip_suffix(']')).unwrap_or(hop);
    let address = bare.parse().or_else(|_| hop.parse().map(|with: SocketAddr| with.ip()));
    address.ok().map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(peer: &str, forwarded: &[&str]) -> String {
        let trusted = ["10.0.0.0/8", "fd00::/8"].map(|net| net.parse().expect("a net"));
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append(FORWARDED_FOR, value.parse().expect("a header's value"));
        }
        client(peer.parse().expect("an address"), &headers, &trusted).to_string()
    }

    #[test]
    fn a_stranger_is_not_believed() {
        assert_eq!(from("192.0.2.1", &["198.51.100.7"]), "192.0.2.1");
        assert_eq!(from("::ffff:192.0.2.1", &["198.51.100.7"]), "192.0.2.1");
    }

    #[test]
    fn of_what_trusted_proxies_say_the_right_most_stranger_is_the_client() {
        assert_eq!(from("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(from("10.0.0.1", &["198.51.100.7"]), "198.51.100.7");
        assert_eq!(from("10.0.0.1", &["6.6.6.6, 198.51.100.7, 10.9.9.9"]), "198.51.100.7");
        assert_eq!(from("10.0.0.1", &["6.6.6.6", "198.51.100.7:443", "10.9.9.9"]), "198.51.100.7");
        assert_eq!(from("::ffff:10.0.0.1", &["[2001:db8::1]:80, [fd00::2]"]), "2001:db8::1");
        assert_eq!(from("10.0.0.1", &["6.6.6.6, junk, 10.9.9.9"]), "10.9.9.9");
    }
}
