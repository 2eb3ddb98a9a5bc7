//! Open requests, both ways, each settled exactly once. Knows no method but `$/cancel_request`.

use alloc::vec::Vec;
use core::marker::PhantomData;

use super::rpc::RequestId;

/// The method that withdraws a request.
pub const CANCEL_REQUEST: &str = "$/cancel_request";

/// A local handle of one open request of the peer: counted, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKey(u64);

/// Why a request was not opened. The tag is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused<T> {
    /// A request with this id is open; it stays.
    Duplicate(T),
    /// As many requests as may be are open.
    Full(T),
}

/// Requests of the peer that wait for our answer.
#[derive(Clone, Debug)]
pub struct IncomingRequests<T>(PhantomData<T>);

impl<T> IncomingRequests<T> {
    /// At most `max_open` at once.
    pub fn new(max_open: usize) -> Self {
        let _ = max_open;
        todo!()
    }

    /// Registers a request.
    pub fn open(&mut self, id: RequestId, tag: T) -> Result<RequestKey, Refused<T>> {
        let _ = (id, tag);
        todo!()
    }

    /// The open request with this id.
    pub fn find(&self, id: &RequestId) -> Option<RequestKey> {
        let _ = id;
        todo!()
    }

    /// The tag of an open request.
    pub fn get(&self, key: RequestKey) -> Option<&T> {
        let _ = key;
        todo!()
    }

    /// The tag of an open request.
    pub fn get_mut(&mut self, key: RequestKey) -> Option<&mut T> {
        let _ = key;
        todo!()
    }

    /// Ends a request, once: gives what its answer needs.
    pub fn settle(&mut self, key: RequestKey) -> Option<(RequestId, T)> {
        let _ = key;
        todo!()
    }

    /// Open requests, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (RequestKey, &RequestId, &T)> {
        core::iter::empty()
    }

    /// How many are open.
    pub fn len(&self) -> usize {
        todo!()
    }

    /// Whether none is open.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Requests of ours that wait for the peer's answer. Ids are 1, 2, 3…
#[derive(Clone, Debug)]
pub struct OutgoingRequests<T>(PhantomData<T>);

impl<T> OutgoingRequests<T> {
    /// None open.
    pub fn new() -> Self {
        todo!()
    }

    /// Registers a request; gives the id to send it with.
    pub fn open(&mut self, tag: T) -> u64 {
        let _ = tag;
        todo!()
    }

    /// The tag of an open request.
    pub fn get(&self, id: u64) -> Option<&T> {
        let _ = id;
        todo!()
    }

    /// An answer came (or a spoiled one): gives the tag, once. Nothing for late and unknown ones.
    pub fn settle(&mut self, id: &RequestId) -> Option<T> {
        let _ = id;
        todo!()
    }

    /// Gives a request up and appends its `$/cancel_request` to `out`. A late answer is unknown.
    pub fn withdraw(&mut self, id: u64, out: &mut Vec<u8>) -> Option<T> {
        let _ = (id, out);
        todo!()
    }

    /// The peer is gone: gives up all, oldest first, and sends nothing.
    pub fn abandon(&mut self) -> impl Iterator<Item = (u64, T)> {
        core::iter::empty()
    }

    /// Open requests, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        core::iter::empty()
    }

    /// How many are open.
    pub fn len(&self) -> usize {
        todo!()
    }

    /// Whether none is open.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> Default for OutgoingRequests<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Appends a `$/cancel_request` for `id` as one whole frame.
pub fn write_cancel_request(out: &mut Vec<u8>, id: &RequestId) {
    let _ = (out, id);
    todo!()
}

/// The id that the params of a `$/cancel_request` name.
pub fn read_cancel_request(params: Option<&str>) -> Option<RequestId> {
    let _ = params;
    todo!()
}
