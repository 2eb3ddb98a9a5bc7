//! Open requests, both ways, each settled exactly once. Knows no method but `$/cancel_request`.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::id::RequestId;
use super::rpc::write_notification;

/// The method that withdraws a request (ACP, Cancellation).
pub const CANCEL_REQUEST: &str = "$/cancel_request";

/// A local handle of one open request of the peer: counted, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKey(u64);

/// Why a request was not opened. The tag is given back. Exhaustive: a caller answers each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused<T> {
    /// A request with this id is open; it stays.
    Duplicate(T),
    /// As many requests as may be are open.
    Full(T),
}

/// Requests of the peer that wait for our answer.
#[derive(Clone, Debug)]
pub struct IncomingRequests<T> {
    max_open: usize,
    last: u64,
    keys: BTreeMap<RequestId, RequestKey>,
    open: BTreeMap<RequestKey, (RequestId, T)>,
}

impl<T> IncomingRequests<T> {
    /// At most `max_open` at once.
    pub fn new(max_open: usize) -> Self {
        Self {
            max_open,
            last: 0,
            keys: BTreeMap::new(),
            open: BTreeMap::new(),
        }
    }

    /// Registers a request. Ids are compared by type and value; one that is open already is refused,
    /// one that was settled may come again.
    pub fn open(&mut self, id: RequestId, tag: T) -> Result<RequestKey, Refused<T>> {
        if self.keys.contains_key(&id) {
            return Err(Refused::Duplicate(tag));
        }
        if self.open.len() >= self.max_open {
            return Err(Refused::Full(tag));
        }
        self.last += 1;
        let key = RequestKey(self.last);
        self.keys.insert(id.clone(), key);
        self.open.insert(key, (id, tag));
        Ok(key)
    }

    /// The open request with this id.
    pub fn find(&self, id: &RequestId) -> Option<RequestKey> {
        self.keys.get(id).copied()
    }

    /// The id of an open request.
    pub fn id(&self, key: RequestKey) -> Option<&RequestId> {
        self.open.get(&key).map(|(id, _)| id)
    }

    /// The tag of an open request.
    pub fn get(&self, key: RequestKey) -> Option<&T> {
        self.open.get(&key).map(|(_, tag)| tag)
    }

    /// The tag of an open request.
    pub fn get_mut(&mut self, key: RequestKey) -> Option<&mut T> {
        self.open.get_mut(&key).map(|(_, tag)| tag)
    }

    /// Ends a request: gives the id to answer under and the tag, the first time only.
    pub fn settle(&mut self, key: RequestKey) -> Option<(RequestId, T)> {
        let (id, tag) = self.open.remove(&key)?;
        self.keys.remove(&id);
        Some((id, tag))
    }

    /// Open requests, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (RequestKey, &RequestId, &T)> {
        self.open.iter().map(|(key, (id, tag))| (*key, id, tag))
    }

    /// How many are open.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether none is open.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}

/// Requests of ours that wait for the peer's answer. Ids are 1, 2, 3… and never used twice.
///
/// An answer that cannot be read ([`ReadFault::spoils`](super::rpc::ReadFault)) settles its request
/// like any other.
#[derive(Clone, Debug)]
pub struct OutgoingRequests<T> {
    last: u64,
    open: BTreeMap<u64, T>,
}

impl<T> OutgoingRequests<T> {
    /// None open.
    pub fn new() -> Self {
        Self {
            last: 0,
            open: BTreeMap::new(),
        }
    }

    /// Registers a request; gives the id to send it with.
    pub fn open(&mut self, tag: T) -> u64 {
        self.last += 1;
        self.open.insert(self.last, tag);
        self.last
    }

    /// The id of a request whose answer nobody waits for.
    pub fn pass(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// The tag of an open request.
    pub fn get(&self, id: u64) -> Option<&T> {
        self.open.get(&id)
    }

    /// The tag of an open request.
    pub fn get_mut(&mut self, id: u64) -> Option<&mut T> {
        self.open.get_mut(&id)
    }

    /// An answer came: gives the number and tag of its request, the first time only. Nothing for
    /// late and unknown answers, nor for ids of another type.
    pub fn settle(&mut self, id: &RequestId) -> Option<(u64, T)> {
        let id = id.as_u64()?;
        Some((id, self.open.remove(&id)?))
    }

    /// Gives a request up and appends its `$/cancel_request` to `out`, the first time only. A late
    /// answer is unknown from here on.
    pub fn withdraw(&mut self, id: u64, out: &mut Vec<u8>) -> Option<T> {
        let tag = self.open.remove(&id)?;
        // Ids are counted from 1 and do not come near 2^63.
        write_cancel_request(out, &RequestId::from(id as i64));
        Some(tag)
    }

    /// The peer is gone: gives up all, oldest first, and sends nothing.
    pub fn abandon(&mut self) -> impl Iterator<Item = (u64, T)> + use<T> {
        core::mem::take(&mut self.open).into_iter()
    }

    /// Open requests, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.open.iter().map(|(id, tag)| (*id, tag))
    }

    /// How many are open.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether none is open.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}

impl<T> Default for OutgoingRequests<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[derive(Serialize, Deserialize)]
struct CancelRequest<I> {
    #[serde(rename = "requestId")]
    request_id: I,
}

/// Appends a `$/cancel_request` for `id` as one whole frame.
pub fn write_cancel_request(out: &mut Vec<u8>, id: &RequestId) {
    let request_id = id;
    write_notification(out, CANCEL_REQUEST, &CancelRequest { request_id });
}

/// The id that the params of a `$/cancel_request` name; none if they name none, which is to be
/// passed over in silence.
pub fn read_cancel_request(params: Option<&str>) -> Option<RequestId> {
    // An array would be taken for the members in order.
    let params = params.filter(|text| text.starts_with('{'))?;
    let cancel: CancelRequest<RequestId> = serde_json::from_str(params).ok()?;
    Some(cancel.request_id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_id_that_is_open_is_refused_and_the_first_stays() {
        let mut open = IncomingRequests::new(2);
        let id = |text: &str| RequestId::from_json(text).unwrap();
        let first = open.open(id("\"a\""), 'a').unwrap();
        assert_eq!(
            open.open(id("\"\\u0061\""), 'b'),
            Err(Refused::Duplicate('b'))
        );
        let second = open.open(id("1"), 'c').unwrap();
        assert_eq!(open.open(id("\"1\""), 'd'), Err(Refused::Full('d')));
        assert_eq!(open.find(&id("\"a\"")), Some(first));
        assert_eq!(open.get(first), Some(&'a'));
        assert_eq!(open.settle(first), Some((id("\"a\""), 'a')));
        assert_eq!(open.settle(first), None);
        let again = open.open(id("\"a\""), 'e').unwrap();
        assert_ne!(again, first);
        assert_eq!(open.get(first), None);
        assert_eq!(
            open.iter().map(|(key, ..)| key).collect::<Vec<_>>(),
            [second, again]
        );
    }

    #[test]
    fn an_answer_settles_the_request_of_its_own_id_only() {
        let mut open = OutgoingRequests::new();
        assert_eq!([open.open('a'), open.open('b')], [1, 2]);
        for text in [
            "\"1\"",
            "1.0",
            "1e0",
            "null",
            "0",
            "-1",
            "3",
            "18446744073709551617",
        ] {
            assert_eq!(
                open.settle(&RequestId::from_json(text).unwrap()),
                None,
                "{text}"
            );
        }
        assert_eq!(open.settle(&RequestId::from(1)), Some((1, 'a')));
        assert_eq!(open.settle(&RequestId::from(1)), None);
        assert_eq!(open.open('c'), 3);
        assert_eq!(open.abandon().collect::<Vec<_>>(), [(2, 'b'), (3, 'c')]);
        assert_eq!(open.open('d'), 4);
    }

    #[test]
    fn a_withdrawn_request_is_cancelled_at_the_peer_once() {
        let mut open = OutgoingRequests::new();
        let id = open.open('a');
        let mut out = Vec::new();
        assert_eq!(open.withdraw(id, &mut out), Some('a'));
        assert_eq!(open.withdraw(id, &mut out), None);
        assert_eq!(open.settle(&RequestId::from(1)), None);
        let expected = r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}"#;
        assert_eq!(core::str::from_utf8(&out).unwrap().trim_end(), expected);
    }

    #[test]
    fn a_cancel_names_the_id_as_it_is() {
        for id in ["1", "\"a\"", "1.50", "\"\\u0061\"", "null"] {
            let id = RequestId::from_json(id).unwrap();
            let mut out = Vec::new();
            write_cancel_request(&mut out, &id);
            let Ok(crate::wire::Message::Notification { params, .. }) =
                crate::wire::rpc::read(&out, 9)
            else {
                panic!("a notification");
            };
            assert_eq!(read_cancel_request(params), Some(id));
        }
        for params in ["{}", "[1]", "{\"requestId\":true}", "{\"requestId\":{}}"] {
            assert_eq!(read_cancel_request(Some(params)), None, "{params}");
        }
        assert_eq!(read_cancel_request(None), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_request_is_settled_once_whatever_the_order(
            steps in proptest::collection::vec((0..4u8, 0..12i64), 0..80),
        ) {
            let mut incoming = IncomingRequests::new(8);
            let mut outgoing = OutgoingRequests::new();
            // The plain definition: what is open, in lists.
            let mut theirs: Vec<(RequestKey, i64)> = Vec::new();
            let mut ours: Vec<u64> = Vec::new();
            let mut sent = 0;
            for (step, number) in steps {
                let mut out = Vec::new();
                match step {
                    0 => {
                        let opened = incoming.open(RequestId::from(number), number);
                        let twice = theirs.iter().any(|(_, open)| *open == number);
                        prop_assert_eq!(opened.is_ok(), !twice && theirs.len() < 8);
                        theirs.extend(opened.ok().map(|key| (key, number)));
                    }
                    1 => {
                        let key = RequestKey(number as u64);
                        let at = theirs.iter().position(|(open, _)| *open == key);
                        let expected = at.map(|at| theirs.remove(at).1);
                        let settled = incoming.settle(key);
                        prop_assert_eq!(settled, expected.map(|number| (RequestId::from(number), number)));
                    }
                    2 => {
                        sent += 1;
                        prop_assert_eq!(outgoing.open(sent), sent);
                        ours.push(sent);
                    }
                    _ => {
                        let at = ours.iter().position(|open| *open == number as u64);
                        let expected = at.map(|at| ours.remove(at));
                        if number % 3 == 0 {
                            prop_assert_eq!(outgoing.withdraw(number as u64, &mut out), expected);
                            prop_assert_eq!(out.is_empty(), expected.is_none());
                        } else {
                            let settled = outgoing.settle(&RequestId::from(number));
                            prop_assert_eq!(settled, expected.map(|id| (id, id)));
                        }
                    }
                }
                prop_assert_eq!(incoming.len(), theirs.len());
                prop_assert!(outgoing.iter().map(|(id, _)| id).eq(ours.iter().copied()));
                for (key, number) in &theirs {
                    prop_assert_eq!(incoming.find(&RequestId::from(*number)), Some(*key));
                }
            }
        }
    }
}
