//! Values under numbers that are never used twice. Knows nothing of what they are.

use alloc::vec::Vec;

/// A dense table. A number is the place and how often the place was taken.
#[derive(Debug)]
pub(super) struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Slab<T> {
    pub(super) const fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn insert(&mut self, value: T) -> u64 {
        if let Some(place) = self.free.pop() {
            let slot = &mut self.slots[place as usize];
            slot.generation += 1;
            slot.value = Some(value);
            return number(place, slot.generation);
        }
        // `Limits` keeps the table far below 2^32 places.
        let place = u32::try_from(self.slots.len()).expect("fewer than 2^32 at once");
        self.slots.push(Slot {
            generation: 1,
            value: Some(value),
        });
        number(place, 1)
    }

    pub(super) fn get(&self, number: u64) -> Option<&T> {
        let slot = self.slots.get(number as u32 as usize)?;
        if u64::from(slot.generation) != number >> 32 {
            return None;
        }
        slot.value.as_ref()
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let slot = self.slots.get_mut(number as u32 as usize)?;
        if u64::from(slot.generation) != number >> 32 {
            return None;
        }
        slot.value.as_mut()
    }

    pub(super) fn remove(&mut self, key: u64) -> Option<T> {
        self.get(key)?;
        let place = key as u32;
        let slot = &mut self.slots[place as usize];
        // A place that was taken 2^32 times is given up rather than used again.
        if slot.generation < u32::MAX {
            self.free.push(place);
        }
        slot.value.take()
    }
}

fn number(place: u32, generation: u32) -> u64 {
    u64::from(generation) << 32 | u64::from(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_not_used_again() {
        let mut slab = Slab::new();
        let first = slab.insert('a');
        assert_eq!(slab.remove(first), Some('a'));
        let second = slab.insert('b');
        assert_ne!(first, second);
        assert_eq!(slab.get(first), None);
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.get_mut(second), Some(&mut 'b'));
        assert_eq!(slab.len(), 1);
    }
}
