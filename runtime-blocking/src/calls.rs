//! The calls of an agent that are under way: started, fed, aborted, and their news brought back in
//! the order they came. Knows what a call needs of the system, not what it is for.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use reasonix_core::agent::Config;
use reasonix_core::call::{Call, CustomCall, Outcome};
use reasonix_core::error::{IoFault, IoKind};
use reasonix_core::ids::CallId;
use reasonix_core::settings::Host;
use rustix::event::PollFlags;
use std::os::fd::BorrowedFd;

use crate::bell::{Bell, Ringer};
use crate::config;
use crate::hooks::Hooks;
use crate::ops::process::{Group, Guard, Mark, PATIENCE, Running, Slot, Tag};
use crate::ops::{self, Kept, Stop, Told, http};

/// Work for a thread.
pub type Job = Box<dyn FnOnce() + Send>;

/// What gives work to threads. It must not wait.
pub type Hands = Box<dyn Fn(Job)>;

/// News on their way from the threads. Credit bounds the bytes in them; a thread waits if there
/// are too many.
const ON_THE_WAY: usize = 64;

/// How often it is looked whether a group is empty whose call is over: so long could its number
/// mean another one's group.
const LOOK: Duration = Duration::from_secs(2);

type Posted = (CallId, Told);

pub(crate) struct Calls {
    host: Host,
    hidden: Vec<String>,
    hooks: Hooks,
    kept: Kept,
    ringer: Ringer,
    hands: Hands,
    post: Option<(SyncSender<Posted>, Receiver<Posted>)>,
    http: BTreeMap<CallId, Http>,
    running: BTreeMap<CallId, Running>,
    plain: BTreeMap<CallId, Plain>,
    /// Groups whose call is over while somebody of them is left.
    lingering: BTreeMap<CallId, Lingering>,
    /// When to look again whether somebody is.
    look_at: Option<Instant>,
    /// News of this thread.
    due: VecDeque<(CallId, Told)>,
    /// What all programs have in their environment.
    mark: Option<Mark>,
    /// Ends all groups if we cannot. The last field: it is dropped when nobody is left to end.
    guard: Option<Guard>,
    unguarded: bool,
}

struct Lingering {
    group: Group,
    /// Whom its program started, in the group or not.
    tag: Option<Tag>,
    /// They were asked to end and are not asked twice.
    kill_at: Option<Instant>,
}

impl Lingering {
    /// Whether somebody is left to be waited for. Who left the group is not, till it is to end.
    fn exists(&self) -> bool {
        let kin = || self.tag.as_ref().is_some_and(Tag::exists);
        self.group.exists() || (self.kill_at.is_some() && kin())
    }

    fn kill(&self) {
        self.group.kill();
        self.tag.iter().for_each(Tag::kill);
    }
}

struct Http {
    handle: http::Handle,
    /// Credit that was given and is not used up by news handed over.
    outstanding: usize,
}

struct Plain {
    stop: Stop,
    /// Changes something, so that only its own end tells what happened.
    changes: bool,
}

impl Calls {
    pub fn new(config: &Config, hooks: Hooks, bell: &Bell, hands: Hands) -> Self {
        Self {
            host: config.host.clone(),
            hidden: config::key_names(&config.settings),
            hooks,
            kept: Kept::default(),
            ringer: bell.ringer(),
            hands,
            post: None,
            http: BTreeMap::new(),
            running: BTreeMap::new(),
            plain: BTreeMap::new(),
            lingering: BTreeMap::new(),
            look_at: None,
            due: VecDeque::new(),
            mark: Mark::new(),
            guard: None,
            unguarded: false,
        }
    }

    pub fn start(&mut self, id: CallId, call: Call) {
        match call {
            Call::Http(request) => {
                let handle = http::Handle::default();
                let call = Http {
                    handle: handle.clone(),
                    outstanding: 0,
                };
                self.http.insert(id, call);
                let post = self.post();
                let job = move || {
                    let run = || http::run(&request, &handle, |told| post(id, told));
                    if let Err(fault) = whole(run) {
                        post(id, Told::Failed(fault));
                    }
                };
                (self.hands)(Box::new(job));
            }
            Call::Process(process) => {
                self.see_to_guard();
                let (shell, guard) = (&self.host.shell, self.guard.as_mut());
                let tag = self.mark.as_mut().map(Mark::tag);
                match ops::process::spawn(&process, shell, &self.hidden, guard, tag) {
                    Ok(running) => drop(self.running.insert(id, running)),
                    Err(fault) => self.due.push_back((id, Told::Failed(fault))),
                }
            }
            call @ (Call::Resolve { .. }
            | Call::Read { .. }
            | Call::Write(_)
            | Call::Remove { .. }
            | Call::Rename { .. }
            | Call::List { .. }
            | Call::Search(_)
            | Call::ReadAt { .. }
            | Call::Append(_)
            | Call::Lock { .. }
            | Call::Unlock { .. }
            | Call::RemoveTree { .. }
            | Call::Reconfigure
            | Call::Custom(_)) => {
                let stop = Stop::default();
                let plain = Plain {
                    stop: stop.clone(),
                    changes: changes(&call),
                };
                self.plain.insert(id, plain);
                let (host, hooks) = (self.host.clone(), self.hooks.clone());
                let kept = self.kept.clone();
                let post = self.post();
                let job = move || {
                    let run = || {
                        if let Call::Custom(call) = &call {
                            custom(call, &hooks)
                        } else {
                            ops::run(call, &host, &kept, &stop)
                        }
                    };
                    post(id, whole(run).unwrap_or_else(Told::Failed));
                };
                (self.hands)(Box::new(job));
            }
        }
    }

    pub fn feed(&mut self, id: CallId, bytes: &[u8]) {
        if let Some(running) = self.running.get_mut(&id) {
            running.feed(bytes);
            self.step(id, 0);
        }
    }

    pub fn feed_end(&mut self, id: CallId) {
        if let Some(running) = self.running.get_mut(&id) {
            running.feed_end();
        }
    }

    pub fn abort(&mut self, id: CallId) {
        if let Some(running) = self.running.get_mut(&id) {
            running.abort(Instant::now());
            return;
        }
        if let Some(left) = self.lingering.get_mut(&id) {
            if left.kill_at.is_none() {
                left.group.ask_to_end();
                left.tag.as_ref().map(Tag::ask_to_end);
                left.kill_at = Some(Instant::now() + PATIENCE);
                self.look_at = self.look_at.min(left.kill_at);
            }
            return;
        }
        // What its thread still says finds no call.
        if let Some(call) = self.http.remove(&id) {
            call.handle.abort();
        } else if self.plain.get(&id).is_some_and(|it| !it.changes) {
            self.plain.remove(&id).iter().for_each(|it| it.stop.set());
        } else {
            return;
        }
        let fault = IoFault::new(IoKind::Aborted, "aborted");
        self.due.push_back((id, Told::Failed(fault)));
    }

    /// The next news, if there are any. After the last news of a call it is forgotten.
    pub fn next(&mut self) -> Option<(CallId, Told)> {
        if let Some((id, told)) = self.due.pop_front() {
            return Some((id, told));
        }
        loop {
            let (id, told) = self.post.as_ref()?.1.try_recv().ok()?;
            if told.is_last() {
                if self.http.remove(&id).is_none() && self.plain.remove(&id).is_none() {
                    continue;
                }
            } else if let Some(call) = self.http.get_mut(&id) {
                if let Told::Bytes(_, bytes) = &told {
                    call.outstanding = call.outstanding.saturating_sub(bytes.len());
                }
            } else {
                continue;
            }
            if let Told::Done(Outcome::Reconfigured(Ok(settings))) = &told {
                self.hidden = config::key_names(settings);
            }
            return Some((id, told));
        }
    }

    /// Lets requests read what the machine has room for.
    pub fn grant(&mut self, room: impl Fn(CallId) -> usize) {
        for (id, call) in &mut self.http {
            let more = room(*id).saturating_sub(call.outstanding);
            if more > 0 {
                call.outstanding += more;
                call.handle.grant(more);
            }
        }
    }

    /// Does what processes have to do now; their news are among the next.
    pub fn step_all(&mut self, room: impl Fn(CallId) -> usize) {
        let ids: Vec<CallId> = self.running.keys().copied().collect();
        for id in ids {
            self.step(id, room(id));
        }
        self.look(Instant::now());
    }

    /// What to wait on.
    pub fn wants<'a>(
        &'a self,
        room: impl Fn(CallId) -> usize + 'a,
    ) -> impl Iterator<Item = (CallId, Slot, BorrowedFd<'a>, PollFlags)> {
        self.running
            .iter()
            .filter(|(_, running)| !running.settled())
            .flat_map(move |(id, running)| {
                let wants = running.wants(room(*id));
                wants.map(|(slot, fd, flags)| (*id, slot, fd, flags))
            })
    }

    /// Whether this descriptor may be wanted again.
    pub fn is_open(&self, id: CallId, slot: Slot) -> bool {
        self.running.get(&id).is_some_and(|it| it.is_open(slot))
    }

    /// When [`step_all`](Self::step_all) is due.
    pub fn wait_at_most(&self) -> Option<Duration> {
        let running = self.running.values().filter_map(Running::deadline);
        let deadline = running.chain(self.look_at).min();
        deadline.map(|at| at.saturating_duration_since(Instant::now()))
    }

    /// Whether there are processes to step.
    pub fn any_processes(&self) -> bool {
        !self.running.is_empty() || !self.lingering.is_empty()
    }

    /// Ends everything; no process of ours is left after it. Takes a moment if one has to be asked
    /// twice.
    pub fn end(mut self) {
        let running = std::mem::take(&mut self.running);
        let lingering = std::mem::take(&mut self.lingering);
        let groups: Vec<Group> = lingering.into_values().map(|left| left.group).collect();
        let mark = self.mark.take();
        ops::process::end_all(running.into_values().collect(), &groups, mark.as_ref());
    }

    /// Sees to it that a guard lives and knows of every group.
    fn see_to_guard(&mut self) {
        if self.guard.as_mut().is_some_and(Guard::lives) {
            return;
        }
        let running = self.running.values().map(Running::group);
        let groups = running.chain(self.lingering.values().map(|left| left.group));
        match Guard::start(groups, self.mark.as_ref()) {
            Ok(guard) => self.guard = Some(guard),
            Err(error) => {
                self.guard = None;
                if !self.unguarded {
                    log::warn!("programs may outlive this one if it is killed: {error}");
                }
                self.unguarded = true;
            }
        }
    }

    /// Looks who is left of the groups whose call is over, and ends who was to end.
    fn look(&mut self, now: Instant) {
        if self.look_at.is_none_or(|at| at > now) {
            return;
        }
        let guard = &mut self.guard;
        self.lingering.retain(|_, left| {
            if left.kill_at.is_some_and(|at| at <= now) {
                left.kill();
                left.kill_at = None;
            }
            let exists = left.exists();
            if !exists && let Some(guard) = guard {
                guard.over(left.group);
            }
            exists
        });
        let kills = self.lingering.values().filter_map(|left| left.kill_at);
        let again = (!self.lingering.is_empty()).then_some(now + LOOK);
        self.look_at = kills.chain(again).min();
    }

    fn step(&mut self, id: CallId, room: usize) {
        let Some(running) = self.running.get_mut(&id) else {
            return;
        };
        let due = &mut self.due;
        running.step(Instant::now(), room, &mut |told| due.push_back((id, told)));
        if running.over() {
            let group = running.group();
            let tag = running.tag().cloned();
            // What a command that ended by itself left outside of its group stays till we end.
            let ends = running.ends_kin();
            let asked = ends && tag.as_ref().is_some_and(|tag| tag.ask_to_end() > 0);
            self.running.remove(&id);
            if asked || group.exists() {
                let now = Instant::now();
                let kill_at = asked.then_some(now + PATIENCE);
                let left = Lingering {
                    group,
                    tag,
                    kill_at,
                };
                self.lingering.insert(id, left);
                let look_at = kill_at.unwrap_or(now + LOOK);
                self.look_at = Some(self.look_at.map_or(look_at, |at| at.min(look_at)));
            } else if let Some(guard) = &mut self.guard {
                guard.over(group);
            }
        }
    }

    /// What the threads tell their news with.
    fn post(&mut self) -> impl Fn(CallId, Told) + Send + 'static {
        let (sender, _) = self.post.get_or_insert_with(|| sync_channel(ON_THE_WAY));
        let (sender, ringer) = (sender.clone(), self.ringer.clone());
        move |id, told| {
            // An error means that the agent is gone, and nobody wants to know.
            if sender.send((id, told)).is_ok() {
                ringer.ring();
            }
        }
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        for call in self.http.values() {
            call.handle.abort();
        }
        for call in self.plain.values() {
            call.stop.set();
        }
        self.kept.close();
        // What runs is killed by its own drop.
        for left in self.lingering.values() {
            left.group.kill();
        }
        if let Some(kin) = self.mark.as_ref().and_then(Mark::all) {
            kin.kill();
        }
    }
}

/// What `run` gives. A panic in it, which may be one of an embedder's tool, ends the call and not the
/// thread: nobody would ever hear of it again.
fn whole<T>(run: impl FnOnce() -> T) -> Result<T, IoFault> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|_| {
        let why = "it was ended by a fault of the program that does it; standard error says more";
        IoFault::new(IoKind::Other, why)
    })
}

/// Does a call of an embedder's tool.
fn custom(call: &CustomCall, hooks: &Hooks) -> Told {
    match hooks.custom() {
        Some(tool) => Told::Done(Outcome::Custom(tool(call))),
        None => Told::Failed(IoFault::new(
            IoKind::Unsupported,
            format!("no tool named {} is registered", call.name),
        )),
    }
}

fn changes(call: &Call) -> bool {
    match call {
        Call::Write(_)
        | Call::Remove { .. }
        | Call::Rename { .. }
        | Call::Append(_)
        | Call::Lock { .. }
        | Call::Unlock { .. }
        | Call::RemoveTree { .. } => true,
        Call::Http(_)
        | Call::Process(_)
        | Call::Resolve { .. }
        | Call::Read { .. }
        | Call::List { .. }
        | Call::Search(_)
        | Call::ReadAt { .. }
        | Call::Reconfigure
        | Call::Custom(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reasonix_core::call::{Errors, Keep, Process, Program};

    #[test]
    fn a_call_that_panics_ends_as_a_failed_one() {
        let bell = Bell::new().expect("pipes can be made");
        let config = Config::new([0; 32], config::host());
        let hooks = Hooks::new().tools(|_| panic!("on purpose"));
        let mut calls = Calls::new(&config, hooks, &bell, Box::new(|job| job()));
        let id = CallId::new(1);
        calls.start(id, Call::Custom(CustomCall::new("x", "{}")));
        let Some((of, Told::Failed(fault))) = calls.next() else {
            panic!("it is told");
        };
        assert_eq!((of, fault.kind), (id, IoKind::Other));
        assert!(calls.next().is_none());
        calls.end();
    }

    #[test]
    fn a_group_is_let_go_when_nobody_is_left_in_it() {
        let bell = Bell::new().expect("pipes can be made");
        let config = Config::new([0; 32], config::host());
        let mut calls = Calls::new(&config, Hooks::new(), &bell, Box::new(|job| job()));
        assert!(calls.guard.is_none(), "no command, no guard");
        let id = CallId::new(1);
        let process = Process {
            program: Program::Shell("sleep 1000 & echo $!".into()),
            cwd: "/".into(),
            env: Vec::new(),
            stdin: false,
            errors: Errors::Merged,
            keep: Keep::All,
            sandbox: None,
        };
        calls.start(id, Call::Process(process));
        assert!(calls.guard.is_some());
        let limit = Instant::now() + Duration::from_secs(10);
        let till = |what: &str, calls: &mut Calls, done: &dyn Fn(&Calls) -> bool| {
            while !done(calls) {
                assert!(Instant::now() < limit, "never: {what}");
                calls.step_all(|_| 1000);
                std::thread::yield_now();
            }
        };
        till("it is over", &mut calls, &|it| it.running.is_empty());
        let left = calls.lingering[&id].group;
        assert!(calls.wait_at_most().is_some_and(|time| time <= LOOK));
        calls.look(Instant::now() + LOOK);
        assert!(calls.any_processes(), "somebody is there");
        left.kill();
        till("they are dead", &mut calls, &|_| !left.exists());
        calls.look(Instant::now() + LOOK + LOOK);
        assert!(!calls.any_processes());
        assert_eq!(calls.wait_at_most(), None, "nothing is to be looked at");
        let ends = std::iter::from_fn(|| calls.next()).filter(|(_, told)| told.is_last());
        assert_eq!(ends.count(), 1);
        calls.end();
    }
}
