//! The inbox as one would keep it on paper: a list of slips, and a book with a page a change, so that
//! what a crash leaves can be looked up. Written without looking at the real one; knows no bytes.

/// What the slips' states are called.
pub mod state {
    /// It waits.
    pub const QUEUED: &str = "queued";
    /// The turn took it.
    pub const ACCEPTED: &str = "steer_accepted";
    /// The turn has read it.
    pub const CONSUMED: &str = "steer_consumed";
    /// Its turn runs.
    pub const RUNNING: &str = "running";
    /// It is set aside.
    pub const BLOCKED: &str = "blocked";
    /// Nobody knows.
    pub const UNCERTAIN: &str = "uncertain";
}
use state::{ACCEPTED, BLOCKED, CONSUMED, QUEUED, RUNNING, UNCERTAIN};

/// Why one is set aside whose references lead nowhere.
const REFERENCE: &str = "reference_failed";

/// What fits in.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Slips.
    pub items: usize,
    /// Bytes a slip.
    pub item: usize,
    /// Bytes of all slips.
    pub bytes: usize,
    /// Stubs.
    pub stubs: usize,
    /// Failures until a slip is set aside.
    pub attempts: u32,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slip {
    /// Its name.
    pub id: String,
    /// What it says.
    pub text: String,
    /// It is guidance.
    pub steer: bool,
    /// Where it stands.
    pub state: &'static str,
    /// Why it does not simply wait.
    pub block: Option<&'static str>,
    /// Something went wrong with it since it was last told to run.
    pub erred: bool,
    /// The page on which it was last changed, counted from the first book on.
    pub revision: u64,
    /// Its key, and what was said under it first.
    pub key: Option<(String, String)>,
    /// Failures in a row.
    pub failures: u32,
    /// Beginnings that are accounted for.
    pub begun: u32,
}

impl Slip {
    /// What it takes: `{"text":"…"}`.
    fn size(&self) -> usize {
        size(&self.text)
    }
}

fn size(text: &str) -> usize {
    text.len() + r#"{"text":""}"#.len()
}

/// What is kept of a slip with a key that is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stub {
    key: (String, String),
    id: String,
    ran: bool,
}

/// What lies on the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The slips, in order.
    pub slips: Vec<Slip>,
    /// Nothing begins.
    pub paused: bool,
    /// How many were found.
    pub recovered: Option<usize>,
    /// Which page it is, counted from the first book on.
    pub revision: u64,
    stubs: Vec<Stub>,
    /// Who wrote this page.
    writer: u32,
}

/// An answer to whoever puts a slip in: id, what became of it, place, paused, known before.
pub type Answer = (String, &'static str, usize, bool, bool);

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself.
    Finished,
    /// Cancelled.
    Cancelled,
    /// Failed; trying again may help.
    Passing,
    /// Failed; trying again does not help.
    Lasting,
}

/// The table and all its pages since the book was begun.
#[derive(Clone, Debug)]
pub struct Book {
    sizes: Sizes,
    /// What lies on the table now.
    pub now: Page,
    /// One page a change; the first is how the book began.
    pub pages: Vec<Page>,
    writer: u32,
}

impl Book {
    /// An empty table.
    pub fn new(sizes: Sizes) -> Self {
        Self {
            sizes,
            now: Page::default(),
            pages: vec![Page::default()],
            writer: 0,
        }
    }

    /// A new book, as the table is.
    pub fn begin_anew(&mut self) {
        self.now.writer = self.writer;
        self.pages = vec![self.now.clone()];
    }

    fn turn_page(&mut self) {
        self.now.writer = self.writer;
        self.now.revision += 1;
        self.pages.push(self.now.clone());
    }

    fn slip(&mut self, id: &str) -> Result<&mut Slip, &'static str> {
        let slip = self.now.slips.iter_mut().find(|slip| slip.id == id);
        slip.ok_or("item_not_found")
    }

    fn pending(&mut self, id: &str) -> Result<&mut Slip, &'static str> {
        let slip = self.slip(id)?;
        match slip.state {
            QUEUED | BLOCKED | UNCERTAIN => Ok(slip),
            _ => Err("wrong_state"),
        }
    }

    fn bytes(&self) -> usize {
        self.now.slips.iter().map(Slip::size).sum()
    }

    fn change(&mut self, id: &str, act: impl FnOnce(&mut Slip)) {
        let revision = self.now.revision + 1;
        if let Ok(slip) = self.slip(id) {
            act(slip);
            slip.revision = revision;
            self.turn_page();
        }
    }

    fn take_away(&mut self, id: &str, ran: bool) {
        let at = self.now.slips.iter().position(|slip| slip.id == id);
        let slip = self.now.slips.remove(at.expect("it is on the table"));
        if let Some(key) = slip.key {
            let id = slip.id;
            self.now.stubs.push(Stub { key, id, ran });
            if self.now.stubs.len() > self.sizes.stubs {
                self.now.stubs.remove(0);
            }
        }
        self.turn_page();
    }

    /// Puts a slip in.
    pub fn enqueue(
        &mut self,
        id: &str,
        text: &str,
        steer: bool,
        key: Option<&str>,
        broken: bool,
        turn: bool,
    ) -> Result<Answer, &'static str> {
        if text.trim().is_empty() {
            return Err("empty");
        }
        if let Some(key) = key {
            if key.is_empty() || key.contains(' ') {
                return Err("invalid_key");
            }
            let paused = self.now.paused;
            for (place, slip) in self.now.slips.iter().enumerate() {
                match &slip.key {
                    Some((known, said)) if known == key && said == text => {
                        let what = match slip.state {
                            ACCEPTED | CONSUMED => "steer_accepted",
                            _ => "queued_followup",
                        };
                        return Ok((slip.id.clone(), what, place + 1, paused, true));
                    }
                    Some((known, _)) if known == key => return Err("idempotency_conflict"),
                    _ => {}
                }
            }
            for stub in self.now.stubs.iter().rev() {
                if stub.key.0 == key {
                    if stub.key.1 != text {
                        return Err("idempotency_conflict");
                    }
                    let what = if stub.ran {
                        "acknowledged"
                    } else {
                        "discarded"
                    };
                    return Ok((stub.id.clone(), what, 0, paused, true));
                }
            }
        }
        // Of a text that is too long on its own more need not be known.
        if text.len() > self.sizes.item {
            return Err("item_too_large");
        }
        if self.now.slips.len() >= self.sizes.items || self.bytes() + text.len() > self.sizes.bytes
        {
            return Err("inbox_full");
        }
        if size(text) > self.sizes.item {
            return Err("item_too_large");
        }
        if self.bytes() + size(text) > self.sizes.bytes {
            return Err("inbox_full");
        }
        let state = match () {
            () if broken => BLOCKED,
            () if steer && turn && !self.now.paused => ACCEPTED,
            () => QUEUED,
        };
        self.now.paused |= broken;
        self.now.slips.push(Slip {
            id: id.into(),
            text: text.into(),
            steer,
            state,
            block: broken.then_some(REFERENCE),
            erred: false,
            revision: self.now.revision + 1,
            key: key.map(|key| (key.into(), text.into())),
            failures: 0,
            begun: 0,
        });
        self.turn_page();
        let what = if state == ACCEPTED {
            "steer_accepted"
        } else {
            "queued_followup"
        };
        Ok((
            id.into(),
            what,
            self.now.slips.len(),
            self.now.paused,
            false,
        ))
    }

    /// Another text.
    pub fn update(&mut self, id: &str, text: &str, broken: bool) -> Result<(), &'static str> {
        let (sizes, bytes) = (self.sizes, self.bytes());
        let paused = self.now.paused;
        let slip = self.pending(id)?;
        if text.trim().is_empty() {
            return Err("empty");
        }
        if size(text) > sizes.item {
            return Err("item_too_large");
        }
        if size(text) > slip.size() && bytes - slip.size() + size(text) > sizes.bytes {
            return Err("inbox_full");
        }
        let state = match slip.state {
            UNCERTAIN => UNCERTAIN,
            _ if broken => BLOCKED,
            _ => QUEUED,
        };
        // One that is set aside for its turn and now for its references is not the same.
        let block = match state {
            UNCERTAIN => slip.block,
            _ => broken.then_some(REFERENCE),
        };
        let same = slip.text == text && slip.state == state && slip.block == block;
        if same && (paused || !broken) {
            return Ok(());
        }
        self.now.paused |= broken;
        self.change(id, |slip| {
            if slip.state == BLOCKED && state == QUEUED {
                slip.failures = 0;
                slip.erred = false;
            }
            slip.text = text.into();
            slip.state = state;
            slip.block = block;
        });
        Ok(())
    }

    /// Takes one out.
    pub fn delete(&mut self, id: &str) -> Result<(), &'static str> {
        match self.slip(id)?.state {
            RUNNING | CONSUMED => Err("wrong_state"),
            _ => {
                self.take_away(id, false);
                Ok(())
            }
        }
    }

    /// Puts one elsewhere.
    pub fn move_to(&mut self, id: &str, to: i64) -> Result<(), &'static str> {
        self.pending(id)?;
        let from = self
            .now
            .slips
            .iter()
            .position(|slip| slip.id == id)
            .expect("found");
        let to = to.clamp(0, self.now.slips.len() as i64 - 1) as usize;
        if from != to {
            let mut slip = self.now.slips.remove(from);
            slip.revision = self.now.revision + 1;
            self.now.slips.insert(to, slip);
            self.turn_page();
        }
        Ok(())
    }

    /// Pauses, or goes on.
    pub fn set_paused(&mut self, paused: bool) -> bool {
        if self.now.paused != paused {
            self.now.paused = paused;
            if !paused {
                self.now.recovered = None;
            }
            self.turn_page();
        }
        paused
    }

    /// Lets one run again.
    pub fn retry(&mut self, id: &str) -> Result<(), &'static str> {
        match self.slip(id)?.state {
            BLOCKED | UNCERTAIN => {
                self.change(id, |slip| {
                    slip.state = QUEUED;
                    slip.block = None;
                    slip.erred = false;
                    slip.failures = 0;
                });
                Ok(())
            }
            _ => Err("wrong_state"),
        }
    }

    /// Which is next.
    pub fn next(&self) -> Option<String> {
        let mut waiting = self.now.slips.iter().filter(|slip| slip.state == QUEUED);
        match self.now.paused {
            true => None,
            false => waiting.next().map(|slip| slip.id.clone()),
        }
    }

    /// Its turn begins.
    pub fn begin(&mut self, id: &str) {
        self.change(id, |slip| slip.state = RUNNING);
    }

    /// Its turn did not begin after all.
    pub fn release(&mut self, id: &str) {
        self.change(id, |slip| slip.state = QUEUED);
    }

    /// Guidance was read.
    pub fn consume(&mut self, id: &str) {
        self.change(id, |slip| slip.state = CONSUMED);
    }

    /// The turn is over; `item` is the slip it was for.
    pub fn end(&mut self, item: Option<&str>, end: End) {
        let attempts = self.sizes.attempts;
        if let Some(id) = item {
            match end {
                End::Finished | End::Cancelled => self.take_away(id, true),
                End::Passing | End::Lasting => self.change(id, |slip| {
                    slip.begun += 1;
                    fail(slip, end, attempts);
                }),
            }
        }
        for slip in self.now.slips.clone() {
            if slip.state == CONSUMED {
                self.take_away(&slip.id, true);
            }
        }
        for slip in self.now.slips.clone() {
            if slip.state == ACCEPTED {
                self.change(&slip.id, back);
            }
        }
    }

    /// Everything after page `page` is lost, and `writer` takes over. `told` says how often a slip
    /// began, by what is known of it, and how the last time ended.
    pub fn recover(&mut self, page: usize, writer: u32, told: impl Fn(&str) -> (u32, Option<End>)) {
        self.pages.truncate(page + 1);
        self.now = self.pages[page].clone();
        let foreign = self.now.writer != writer;
        self.writer = writer;
        let attempts = self.sizes.attempts;
        let mut worse = false;
        for slip in self.now.slips.clone() {
            let guidance = matches!(slip.state, ACCEPTED | CONSUMED);
            let (times, end) = told(&slip.id);
            let id = &slip.id;
            if times > slip.begun {
                match end {
                    Some(end @ (End::Passing | End::Lasting)) if !guidance => {
                        self.change(id, |slip| {
                            slip.begun = times;
                            fail(slip, end, attempts);
                        });
                    }
                    Some(_) => self.take_away(id, true),
                    None => {
                        worse |= slip.state != UNCERTAIN;
                        self.change(id, |slip| {
                            slip.begun = times;
                            slip.state = UNCERTAIN;
                            slip.block = Some("owner_inactive");
                        });
                    }
                }
            } else if guidance {
                self.change(id, back);
            } else if slip.state == RUNNING {
                self.release(id);
            }
        }
        if self.now.slips.is_empty() {
            self.set_paused(false);
        } else if foreign || worse {
            self.now.paused = true;
            self.now.recovered = Some(self.now.slips.len());
            self.turn_page();
        }
    }
}

fn back(slip: &mut Slip) {
    slip.state = QUEUED;
    slip.steer = false;
    slip.block = None;
}

fn fail(slip: &mut Slip, end: End, attempts: u32) {
    if end == End::Passing {
        slip.failures += 1;
    }
    slip.erred = true;
    slip.block = match end {
        End::Passing if slip.failures < attempts => None,
        End::Passing => Some("attempts_exhausted"),
        End::Finished | End::Cancelled | End::Lasting => Some("turn_failed"),
    };
    slip.state = if slip.block.is_none() {
        QUEUED
    } else {
        BLOCKED
    };
}
