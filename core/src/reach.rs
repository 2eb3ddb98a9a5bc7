//! Which addresses a request may be sent to. Pure; knows no names, no sockets and no URLs.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How far a request may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// The public internet.
    Public,
    /// That, this machine and the private networks it is in.
    Private,
    /// Any address: the person configured where to.
    Anywhere,
}

impl Reach {
    /// Whether a request may be sent to this address.
    ///
    /// What serves the configuration and the keys of machines to whoever asks from inside
    /// (link-local addresses, the metadata services of clouds), addresses of many receivers and
    /// those that belong to nobody are reached only by [`Anywhere`](Self::Anywhere).
    pub fn admits(self, address: IpAddr) -> bool {
        match self {
            Self::Anywhere => true,
            Self::Private => kind(address) != Kind::Neither,
            Self::Public => kind(address) == Kind::Public,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Public,
    Private,
    Neither,
}

fn kind(address: IpAddr) -> Kind {
    match address {
        IpAddr::V4(address) => kind_v4(address),
        IpAddr::V6(address) => kind_v6(address),
    }
}

/// Metadata services that are in no range of their own.
const METADATA_V4: [Ipv4Addr; 2] = [
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
];
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254);

// The registries of special addresses (RFC 6890).
fn kind_v4(address: Ipv4Addr) -> Kind {
    if METADATA_V4.contains(&address) {
        return Kind::Neither;
    }
    match address.octets() {
        [10 | 127, ..] | [100, 64..=127, ..] | [172, 16..=31, ..] | [192, 168, ..] => Kind::Private,
        // Networks for measurements.
        [198, 18 | 19, ..] => Kind::Private,
        [0, ..] | [169, 254, ..] | [224..=255, ..] => Kind::Neither,
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 51, 100, _] | [203, 0, 113, _] => {
            Kind::Neither
        }
        _ => Kind::Public,
    }
}

fn kind_v6(address: Ipv6Addr) -> Kind {
    if address == METADATA_V6 {
        return Kind::Neither;
    }
    let v4 = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        kind_v4(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Kind::Private,
        // Addresses of version 4 in other clothes: mapped, translated, tunnelled.
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => v4(high, low),
        [0x64, 0xff9b, 1, ..] | [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => Kind::Private,
        [0x2001, 0..=0x01ff, ..] | [0x2001, 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => Kind::Neither,
        [0x2000..=0x3fff, ..] => Kind::Public,
        _ => Kind::Neither,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn what_is_not_public_is_reached_only_where_that_is_allowed() {
        #[track_caller]
        fn check(addresses: &str, public: bool, private: bool) {
            for text in addresses.split_whitespace() {
                let address: IpAddr = text.parse().expect(text);
                let mut all = alloc::vec![address];
                if let IpAddr::V4(v4) = address {
                    let [a, b, c, d] = v4.octets();
                    let mapped = format!("::ffff:{v4}");
                    let translated = format!("64:ff9b::{v4}");
                    let tunnelled = format!("2002:{a:02x}{b:02x}:{c:02x}{d:02x}::1");
                    for text in [mapped, translated, tunnelled] {
                        all.push(text.parse().expect("an address"));
                    }
                }
                for address in all {
                    assert_eq!(Reach::Public.admits(address), public, "{address}");
                    assert_eq!(Reach::Private.admits(address), private, "{address}");
                    assert!(Reach::Anywhere.admits(address), "{address}");
                }
            }
        }
        check(
            "1.1.1.1 8.8.8.8 93.184.216.34 172.15.0.1 172.32.0.1",
            true,
            true,
        );
        check(
            "100.63.255.255 100.128.0.0 192.167.1.1 223.255.255.255",
            true,
            true,
        );
        check("2606:4700::1111 2a00:1450:4001::1", true, true);
        check("127.0.0.1 127.1.2.3 10.0.0.1 192.168.1.1", false, true);
        check(
            "172.16.0.1 172.31.255.255 100.64.0.1 100.127.255.255",
            false,
            true,
        );
        check("198.18.0.1 198.19.255.255", false, true);
        check("::1 fc00::1 fd12:3456::1 fec0::1 64:ff9b:1::1", false, true);
        check("0.0.0.0 0.1.2.3 169.254.0.1 169.254.169.254", false, false);
        check(
            "224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255",
            false,
            false,
        );
        check(
            "192.0.0.192 192.0.2.1 192.88.99.1 198.51.100.1 203.0.113.1",
            false,
            false,
        );
        check("100.100.100.200 168.63.129.16 fd00:ec2::254", false, false);
        check(
            ":: ::127.0.0.1 ::8.8.8.8 fe80::1 febf::1 ff02::1 100::1",
            false,
            false,
        );
        check("2001:db8::1 2001::1 3fff::1 4000::1", false, false);
    }
}
