//! Threads for what blocks: made when first needed, used again, gone when long idle.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::calls::Job;

/// Most threads; more work waits. Streams that stay open hold one each.
const THREADS: usize = 512;

/// How long a thread waits for more work.
const IDLE: Duration = Duration::from_secs(10);

/// The threads, through which work is given to them. What was begun is not waited for when this
/// is dropped.
#[derive(Clone, Default)]
pub(crate) struct Pool(Arc<Shared>);

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    more: Condvar,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
}

impl Pool {
    /// Does `job` on one of the threads.
    pub fn run(&self, job: Job) {
        let mut queue = self.0.lock();
        queue.jobs.push_back(job);
        if queue.idle >= queue.jobs.len() {
            // It finds the lock free when it wakes.
            drop(queue);
            self.0.more.notify_one();
        } else if queue.threads < THREADS {
            let shared = Arc::clone(&self.0);
            let name = "reasonix-op".to_owned();
            let spawned = thread::Builder::new()
                .name(name)
                .spawn(move || shared.work());
            match spawned {
                Ok(_) => queue.threads += 1,
                Err(error) if queue.threads == 0 => {
                    log::warn!("no thread can be started ({error}); this waits");
                    let job = queue.jobs.pop_back();
                    drop(queue);
                    job.into_iter().for_each(|job| job());
                }
                Err(_) => {} // another one takes it when it is done
            }
        }
    }
}

impl Shared {
    fn work(&self) {
        let mut queue = self.lock();
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                drop(queue);
                job();
                queue = self.lock();
                continue;
            }
            queue.idle += 1;
            let waited = self.more.wait_timeout(queue, IDLE);
            let (woken, time) = waited.unwrap_or_else(PoisonError::into_inner);
            queue = woken;
            queue.idle -= 1;
            if time.timed_out() && queue.jobs.is_empty() {
                queue.threads -= 1;
                return;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // Jobs run outside of the lock, so nobody can have panicked in it.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn work_runs_at_once_up_to_the_bound_and_threads_are_used_again() {
        let pool = Pool::default();
        let (done, results) = mpsc::channel();
        let gate = Arc::new((Mutex::new(false), Condvar::new()));
        for n in 0..THREADS + 10 {
            let (done, gate) = (done.clone(), Arc::clone(&gate));
            pool.run(Box::new(move || {
                let mut open = gate.0.lock().expect("no one panics");
                while !*open {
                    open = gate.1.wait(open).expect("no one panics");
                }
                done.send(n).expect("the test waits");
            }));
        }
        assert_eq!(pool.0.lock().threads, THREADS);
        *gate.0.lock().expect("no one panics") = true;
        gate.1.notify_all();
        let mut got: Vec<_> = results.iter().take(THREADS + 10).collect();
        got.sort_unstable();
        assert!(got.into_iter().eq(0..THREADS + 10));
        assert!(pool.0.lock().threads <= THREADS);
    }
}
