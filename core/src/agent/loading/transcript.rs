//! The transcript of a session that is being opened: taken in record by record, shown as far as the
//! client has room, and mended at its end.

use alloc::format;
use alloc::string::String;

use super::super::opening::{How, context_window};
use super::super::options::{self, Axes};
use super::super::saving::Stored;
use super::super::{Agent, Level, Preset, content};
use super::Stage;
use crate::engine::record::{Options, Record, VERSION};
use crate::engine::{Context, Output};
use crate::error::CommandError;
use crate::wire::RequestKey;

impl Agent {
    /// The working directory and the project's files are there: the transcript is read.
    pub(in crate::agent) fn read_transcript(&mut self, key: RequestKey) {
        match self.make_engine(key) {
            Ok(engine) => {
                if let Some(loading) = self.loading(key) {
                    loading.engine = Some(engine);
                    loading.stage = Stage::Reading;
                }
                self.read_on(key);
            }
            Err(error) => self.refuse_opening(key, error),
        }
    }

    /// Takes in what was read, and shows it as far as the client has room.
    pub(in crate::agent) fn load_on(&mut self, key: RequestKey) {
        loop {
            if !self.show_replay(key) {
                return;
            }
            let Some(loading) = self.loading(key) else {
                return;
            };
            if loading.stage == Stage::Showing {
                return self.loaded(key);
            }
            match loading.lines.next_line::<Record>() {
                Some(records) => {
                    loading.unreadable += loading.lines.take_unreadable();
                    for record in records {
                        self.take_in(key, &record);
                    }
                }
                None if loading.ended => {
                    loading.lines.finish();
                    // A last line without its end is there now, if there is one.
                    if let Some(records) = loading.lines.next_line::<Record>() {
                        loading.unreadable += loading.lines.take_unreadable();
                        for record in records {
                            self.take_in(key, &record);
                        }
                    }
                    self.read_all(key);
                }
                None if self.read_kept(key) => {}
                None => return self.read_on(key),
            }
        }
    }

    fn take_in(&mut self, key: RequestKey, record: &Record) {
        let limits = &self.config.limits;
        let Some(opening) = self.openings.get_mut(&key) else {
            return;
        };
        let replayed = matches!(opening.how, How::Load(_));
        let Some(loading) = &mut opening.loading else {
            return;
        };
        let mut goal = None;
        if let Some(engine) = &mut loading.engine {
            engine.restore(record);
            goal = engine.goal();
        }
        loading.status.take(record, goal);
        loading.claims.take_in(record);
        if let Record::Options(options) = record {
            loading.options = Some(options.clone());
        } else if let Record::Roots { directories } = record {
            loading.summary.directories.clone_from(directories);
        } else if let Record::Mended { .. } = record {
            loading.unreadable = 0;
        } else if let Some(user) = record.begins_turn() {
            loading.summary.prompts += 1;
            if loading.summary.title.is_empty() {
                loading.summary.title = content::title_of(user, limits.max_session_title);
            }
        }
        if replayed {
            let seen = loading.replay.updates(record, limits);
            loading.waiting.extend(seen);
        }
    }

    /// Replays what waits. False: the client has no room; it is called again when there is some.
    fn show_replay(&mut self, key: RequestKey) -> bool {
        let Some(opening) = self.openings.get_mut(&key) else {
            return false;
        };
        let (How::Load(asked), Some(loading)) = (&opening.how, &mut opening.loading) else {
            return true;
        };
        while let Some(update) = loading.waiting.pop_front() {
            let Some(mut replay) = self.side.replay(asked) else {
                continue;
            };
            if let Err(CommandError::Full(())) = replay.update(&update) {
                loading.waiting.push_front(update);
                return false;
            }
        }
        true
    }

    /// The transcript was read to its end.
    fn read_all(&mut self, key: RequestKey) {
        let Some(opening) = self.openings.get_mut(&key) else {
            return;
        };
        let (id, cwd) = (opening.id.clone(), opening.cwd.clone());
        let directories = opening.roots.asked.clone();
        let Some(loading) = &mut opening.loading else {
            return;
        };
        loading.stage = Stage::Showing;
        // One that is open already is only shown.
        let Some(mut engine) = loading.engine.take() else {
            return;
        };
        let (size, lacks_end) = (loading.lines.read(), loading.lines.lacks_end());
        let (unreadable, torn) = (loading.unreadable, loading.lines.is_torn());
        let (mut summary, version) = (loading.summary.clone(), loading.version);
        summary.updated = summary.updated.max(loading.lines.latest());
        let options = loading.options.take();
        let inbox = loading.inbox.take();
        let mut claims = core::mem::take(&mut loading.claims);
        if unreadable > 0 {
            claims.lack();
        }
        let Some(files) = self.files(&id) else {
            return self.refuse_lost(key);
        };

        let before = summary.directories.clone();
        let mut stored = Stored::on_disk(files, summary, size, lacks_end);
        let unprompted = stored.summary.prompts == 0;
        stored.read_only = match version {
            Some(version) if version > VERSION => Some(format!(
                "The session was written by a later version (format {version}, this agent writes \
                 {VERSION}): it can be read, not continued."
            )),
            Some(_) => None,
            // A session that a loss of power took before anything was said in it is begun anew.
            None if unprompted => None,
            None => Some(
                "The first line of the session's transcript is damaged, so it is not known what \
                 wrote it: it can be read, not continued."
                    .into(),
            ),
        };
        let store = self.add_stored(stored);
        if version.is_none() && unprompted {
            let header = self.header(&id, &cwd);
            self.remember(store, &Record::Session(header));
        }
        if before != directories {
            self.remember_roots(store, directories);
        }
        self.recover_inbox(store, inbox, &claims);
        let (axes, notice) = match &options {
            Some(options) => self.stored_axes(options),
            None => self.stored_axes(&Options::default()),
        };
        let mut cx = Context {
            now: self.now,
            unix_seconds: None,
            ids: &mut self.ids,
            limits: &self.config.limits,
            out: &mut self.said,
        };
        engine.mend(&mut cx);
        if unreadable > 0 {
            let lost = match unreadable {
                1 => "1 line of this session's history could not be read and is left out. It is"
                    .into(),
                lines => format!(
                    "{lines} lines of this session's history could not be read and are left out. \
                     They are"
                ),
            };
            let text = format!("\n\n[warning] {lost} still in its transcript.\n\n");
            engine.record(&mut cx, Record::Mended { unreadable });
            engine.record(&mut cx, Record::Note { text });
        } else if torn {
            engine.record(&mut cx, Record::Mended { unreadable: 1 });
        }
        if let Some(text) = notice {
            engine.record(&mut cx, Record::Note { text });
        }
        engine.set_light(axes.preset == Preset::Light);
        engine.set_delivery(axes.preset == Preset::Delivery);
        engine.set_posture(&mut cx, axes.posture);
        if unreadable > 0 || torn {
            let lines = match unreadable {
                0 => "a torn end".into(),
                1 => String::from("an unreadable line"),
                lines => format!("{lines} unreadable lines"),
            };
            let end = if torn && unreadable > 0 {
                ", a torn end"
            } else {
                ""
            };
            self.report(Level::Warn, format!("session {id}: {lines}{end}"));
        }
        let brain = self.brain_or_nobody(&axes);
        let window = context_window(&self.config.settings, &axes.model);
        engine.set_brain(brain, window);
        while let Some(output) = self.said.pop_front() {
            match output {
                Output::Record(record) => {
                    self.remember(store, &record);
                    self.take_in(key, &record);
                    if let (Record::Note { text }, Some(loading)) = (record, self.loading(key)) {
                        loading.notes.push(text);
                    }
                }
                Output::Start { .. }
                | Output::CallServer { .. }
                | Output::Abort { .. }
                | Output::Update(_)
                | Output::Permit { .. }
                | Output::Questions { .. }
                | Output::Withdraw { .. }
                | Output::Finished(_)
                | Output::Decided(_)
                | Output::Rooted { .. }
                | Output::Log(_) => {}
            }
        }
        if let Some(opening) = self.openings.get_mut(&key) {
            opening.axes = axes;
            opening.store = Some(store);
            if let Some(loading) = &mut opening.loading {
                loading.engine = Some(engine);
            }
        }
    }

    /// All of it was shown: the session is open.
    fn loaded(&mut self, key: RequestKey) {
        let Some(loading) = self.loading(key) else {
            return;
        };
        if loading.live.is_some() {
            return self.answer_live(key);
        }
        if let Some(engine) = loading.engine.take() {
            self.answer_opened(key, engine);
        }
    }

    /// What a session was set to, as far as it can still be that; and what to say if not.
    pub(super) fn stored_axes(&self, options: &Options) -> (Axes, Option<String>) {
        let mut axes = Axes::of_record(options, &self.config);
        if self.brain(&axes).is_ok() {
            let efforts = options::efforts(&self.config.settings, &axes.model);
            axes.effort = axes.effort.filter(|effort| efforts.contains(effort));
            return (axes, None);
        }
        let Ok(model) = self.usable_model() else {
            return (axes, None);
        };
        let notice = (!axes.model.is_empty()).then(|| {
            format!(
                "\n\n[warning] The model {} is not configured any more: {model} answers now.\n\n",
                axes.model
            )
        });
        axes.model = model;
        axes.effort = None;
        (axes, notice)
    }
}
