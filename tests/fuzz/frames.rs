//! Any bytes on the wire: lines are the same however the bytes are cut, memory is bounded, and
//! reading a line never panics.

#![no_main]

use libfuzzer_sys::fuzz_target;
use reasonix_core::wire::frames::{FrameDecoder, Line};
use reasonix_core::wire::rpc::read;

const MAX: usize = 200;

fn lines(data: &[u8], piece: usize) -> Vec<Option<Vec<u8>>> {
    let mut decoder = FrameDecoder::new(MAX);
    let mut lines = Vec::new();
    for bytes in data.chunks(piece) {
        decoder.push(bytes);
        take(&mut decoder, &mut lines);
        assert!(decoder.buffered() <= MAX + piece + 3, "holds {}", decoder.buffered());
    }
    decoder.finish();
    take(&mut decoder, &mut lines);
    lines
}

fn take(decoder: &mut FrameDecoder, lines: &mut Vec<Option<Vec<u8>>>) {
    while let Some(line) = decoder.next_line() {
        lines.push(match line {
            Line::Frame(bytes) => Some(bytes.to_vec()),
            Line::TooLong => None,
        });
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((piece, data)) = data.split_first() else { return };
    let whole = lines(data, data.len().max(1));
    assert_eq!(whole, lines(data, usize::from(*piece) + 1));
    for line in whole.iter().flatten() {
        let _ = read(line, 16);
    }
});
