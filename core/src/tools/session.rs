//! The tools that touch the session only: background jobs, the plan, questions to the user.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write as _;
use core::time::Duration;

use super::args::Args;
use super::run::{Begun, Context, Event, Work};
use super::state::JobId;
use super::step::{Answer, AnswerKind, Choice, Question, Step, Todo, TodoStatus};
use super::workspace::Workspace;
use crate::permission::Access;
use crate::time::{Deadline, Instant, Timer};

pub(super) fn bash_output(args: &Args<'_>, ws: &Workspace) -> Result<Begun, String> {
    job_tool(args, ws, JobTool::Output)
}

pub(super) fn kill_shell(args: &Args<'_>, ws: &Workspace) -> Result<Begun, String> {
    job_tool(args, ws, JobTool::Kill)
}

fn job_tool(args: &Args<'_>, ws: &Workspace, what: JobTool) -> Result<Begun, String> {
    let id = args.words("job_id")?;
    let job = read_job("job_id", &id)?;
    let work = Jobs {
        jobs: Some(alloc::vec![job]),
        what,
        patience: ws.limits.close_grace,
        give_up: None,
    };
    Ok(Begun::new(work, job.to_string()))
}

pub(super) fn wait(args: &Args<'_>, ws: &Workspace) -> Result<Begun, String> {
    let limits = &ws.limits;
    let jobs = match args.opt_strings("job_ids")? {
        Some(ids) if !ids.is_empty() => {
            let read = |id: &String| read_job("job_ids", id);
            Some(ids.iter().map(read).collect::<Result<Vec<_>, _>>()?)
        }
        Some(_) | None => None,
    };
    let patience = args.opt_seconds("timeout_seconds", limits.max_command_time)?;
    let subject = match &jobs {
        Some(jobs) => jobs
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", "),
        None => String::new(),
    };
    let work = Jobs {
        jobs,
        what: JobTool::Wait,
        patience: patience.unwrap_or(limits.command_time),
        give_up: None,
    };
    Ok(Begun::new(work, subject))
}

fn read_job(parameter: &str, id: &str) -> Result<JobId, String> {
    JobId::parse(id)
        .ok_or_else(|| format!("`{parameter}` must be as bash gave it, such as `job-1`"))
}

#[derive(Debug)]
struct Jobs {
    /// None: all that run.
    jobs: Option<Vec<JobId>>,
    what: JobTool,
    patience: Duration,
    give_up: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JobTool {
    Output,
    Kill,
    Wait,
}

impl Work for Jobs {
    fn handle(&mut self, event: Event<'_>, cx: &mut Context<'_>) {
        match event {
            Event::Started => self.begin(cx),
            Event::Permitted => {
                if self.what == JobTool::Kill {
                    for job in self.unfinished(cx) {
                        cx.flow.steps.push_back(Step::AbortJob(job));
                    }
                }
                self.give_up = Some(cx.now.plus(self.patience));
                self.look(cx);
            }
            Event::Idle if self.give_up.is_some() => self.look(cx),
            Event::Due => {
                self.give_up = None;
                self.report(cx);
            }
            Event::Idle
            | Event::Answered(_)
            | Event::Bytes(_)
            | Event::Done(_)
            | Event::Failed(_) => {}
        }
    }

    fn deadline(&self, _opened: Option<Instant>) -> Option<Deadline> {
        self.give_up.map(|at| Deadline {
            at,
            why: Timer::ToolLimit,
        })
    }
}

impl Jobs {
    fn begin(&mut self, cx: &mut Context<'_>) {
        let running: Vec<JobId> = cx.state.running_jobs().collect();
        let jobs = self.jobs.get_or_insert(running);
        if jobs.is_empty() {
            return cx.succeed("No background command runs.");
        }
        if let Some(unknown) = jobs.iter().find(|id| cx.state.job(**id).is_none()) {
            return cx.fail(format!("there is no job {unknown}"));
        }
        cx.permit(Access::Session, Vec::new());
    }

    fn unfinished(&self, cx: &mut Context<'_>) -> Vec<JobId> {
        let jobs = self.jobs.iter().flatten().copied();
        jobs.filter(|id| cx.state.job(*id).is_some_and(|job| job.ended.is_none()))
            .collect()
    }

    /// Ends the call if there is nothing to wait for.
    fn look(&mut self, cx: &mut Context<'_>) {
        if self.what == JobTool::Output || self.unfinished(cx).is_empty() {
            self.give_up = None;
            self.report(cx);
        }
    }

    fn report(&self, cx: &mut Context<'_>) {
        let late = !self.unfinished(cx).is_empty();
        let mut out = String::new();
        for id in self.jobs.iter().flatten() {
            if let Some(job) = cx.state.job(*id) {
                out.push_str(job.report(*id, cx.now, &cx.ws.secrets).trim_end());
                out.push('\n');
            }
        }
        match self.what {
            JobTool::Wait if late => out.push_str("[the time was up before all had ended]\n"),
            JobTool::Kill if late => {
                out.push_str("[it was told to end but has not ended yet]\n");
            }
            JobTool::Output | JobTool::Kill | JobTool::Wait => {}
        }
        out.pop();
        if self.what == JobTool::Kill && late {
            cx.fail(out);
        } else {
            cx.succeed(out);
        }
    }
}

pub(super) fn todo_write(args: &Args<'_>, _ws: &Workspace) -> Result<Begun, String> {
    let list = args.opt_list("todos")?.ok_or("`todos` is missing")?;
    let mut todos = Vec::new();
    for item in &list {
        let content = item.opt_string("content")?.unwrap_or_default();
        let status = match item.opt_string("status")?.unwrap_or_default().as_str() {
            "in_progress" => TodoStatus::InProgress,
            "completed" => TodoStatus::Completed,
            _ => TodoStatus::Pending,
        };
        let level = item.opt_count("level")?.unwrap_or(0);
        if !content.trim().is_empty() {
            todos.push(Todo {
                content: content.trim().into(),
                status,
                level: u32::try_from(level).unwrap_or(u32::MAX),
            });
        }
    }
    let subject = match todos.len() {
        1 => "1 entry".into(),
        n => format!("{n} entries"),
    };
    Ok(Begun::new(Plan { todos }, subject))
}

#[derive(Debug)]
struct Plan {
    todos: Vec<Todo>,
}

impl Work for Plan {
    fn handle(&mut self, event: Event<'_>, cx: &mut Context<'_>) {
        match event {
            Event::Started => cx.permit(Access::Session, Vec::new()),
            Event::Permitted => {
                let todos = core::mem::take(&mut self.todos);
                let done = todos
                    .iter()
                    .filter(|todo| todo.status == TodoStatus::Completed);
                let text = format!("The plan is set: {} of {} done.", done.count(), todos.len());
                cx.state.set_todos(todos.clone());
                cx.flow.steps.push_back(Step::Plan(todos));
                cx.succeed(text);
            }
            Event::Answered(_)
            | Event::Bytes(_)
            | Event::Done(_)
            | Event::Failed(_)
            | Event::Due
            | Event::Idle => {}
        }
    }
}

/// Questions in one call.
const MAX_QUESTIONS: usize = 4;

pub(super) fn ask(args: &Args<'_>, _ws: &Workspace) -> Result<Begun, String> {
    let list = args.opt_list("questions")?;
    let mut questions = Vec::new();
    match &list {
        // One question may stand by itself.
        None if args.has("question") => questions.push(read_question(1, args)?),
        None => return Err("`questions` is missing".into()),
        Some(list) => {
            for (index, question) in list.iter().enumerate() {
                questions.push(read_question(index + 1, question)?);
            }
        }
    }
    if questions.is_empty() || questions.len() > MAX_QUESTIONS {
        return Err(format!(
            "`questions` must hold 1 to {MAX_QUESTIONS} questions"
        ));
    }
    let subject = questions[0].text.clone();
    Ok(Begun::new(Ask { questions }, subject))
}

fn read_question(number: usize, args: &Args<'_>) -> Result<Question, String> {
    let read_choice = |option: &Args<'_>| {
        Ok::<_, String>(Choice {
            label: option.words("label")?,
            description: option.opt_string("description")?,
        })
    };
    let choice = |label: &str| Choice {
        label: label.into(),
        description: None,
    };
    let kind = match args.opt_string("type")?.as_deref() {
        None | Some("text") => AnswerKind::Text,
        Some("number") => AnswerKind::Number,
        Some("yes_no") => AnswerKind::YesNo,
        Some(_) => return Err("`type` must be text, number or yes_no".into()),
    };
    let mut options: Vec<Choice> = match args.opt_strings("options") {
        Ok(labels) => {
            let labels = labels.unwrap_or_default();
            labels.iter().map(|label| choice(label)).collect()
        }
        Err(_) => {
            let list = args.opt_list("options")?.unwrap_or_default();
            list.iter().map(read_choice).collect::<Result<_, _>>()?
        }
    };
    match kind {
        AnswerKind::Text => {}
        AnswerKind::Number | AnswerKind::YesNo if !options.is_empty() => {
            return Err("a question with `options` has no other `type` than text".into());
        }
        AnswerKind::Number => {}
        AnswerKind::YesNo => options = AnswerKind::YES_NO.map(choice).into(),
    }
    Ok(Question {
        kind,
        id: format!("q{number}"),
        header: args
            .opt_string("header")?
            .filter(|header| !header.trim().is_empty()),
        text: args.words("question")?,
        options,
        multi: args.flag("multi")?,
    })
}

#[derive(Debug)]
struct Ask {
    questions: Vec<Question>,
}

impl Work for Ask {
    fn handle(&mut self, event: Event<'_>, cx: &mut Context<'_>) {
        match event {
            Event::Started => cx.permit(Access::Session, Vec::new()),
            Event::Permitted => {
                cx.flow.asking = true;
                cx.flow.steps.push_back(Step::Ask(self.questions.clone()));
            }
            Event::Answered(answers) => {
                let mut out = String::new();
                let mut answers = answers.into_iter();
                for question in &self.questions {
                    let _ = writeln!(out, "Question: {}", question.text);
                    let _ = match answers.next().unwrap_or(Answer::Unanswered) {
                        Answer::Chosen(labels) if !labels.is_empty() => {
                            writeln!(out, "Answer: {}", labels.join("; "))
                        }
                        Answer::Text(text) => writeln!(out, "Answer: {text}"),
                        Answer::NotAsked => writeln!(
                            out,
                            "It could not be put to the user here. A question with options to \
                             choose from may be; or go on as you think best."
                        ),
                        Answer::Unfit(why) => writeln!(
                            out,
                            "The answer of the user could not be taken: {why}. Say so and ask \
                             again if you need it, or go on as you think best."
                        ),
                        Answer::Chosen(_) | Answer::Unanswered => writeln!(
                            out,
                            "The user did not answer. Go on as you think best, or say what you \
                             need."
                        ),
                    };
                }
                out.pop();
                cx.succeed(out);
            }
            Event::Bytes(_) | Event::Done(_) | Event::Failed(_) | Event::Due | Event::Idle => {}
        }
    }
}
