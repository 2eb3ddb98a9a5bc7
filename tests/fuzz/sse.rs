//! Any bytes of a model's stream: events are the same however the bytes are cut, memory is bounded.

#![no_main]

use libfuzzer_sys::fuzz_target;
use reasonix_core::wire::sse::SseDecoder;

const MAX: usize = 300;

fn events(data: &[u8], piece: usize) -> Vec<String> {
    let mut decoder = SseDecoder::new(MAX);
    let mut events = Vec::new();
    for bytes in data.chunks(piece) {
        decoder.push(bytes);
        if !take(&mut decoder, &mut events) {
            return events;
        }
        assert!(decoder.buffered() <= 2 * MAX + piece + 3, "holds {}", decoder.buffered());
    }
    decoder.finish();
    take(&mut decoder, &mut events);
    events
}

/// Takes every event that is whole; false after a fault.
fn take(decoder: &mut SseDecoder, events: &mut Vec<String>) -> bool {
    loop {
        match decoder.next_event() {
            Ok(Some(event)) => events.push(format!("{event:?}")),
            Ok(None) => return true,
            Err(fault) => {
                events.push(format!("{fault:?}"));
                return false;
            }
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((piece, data)) = data.split_first() else { return };
    let whole = events(data, data.len().max(1));
    assert_eq!(whole, events(data, usize::from(*piece) + 1));
});
