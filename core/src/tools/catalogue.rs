//! The tools there are: names, what they do, and the JSON schemas of their parameters. Static text,
//! since the order and the bytes are part of what a provider caches.

use super::kind::ToolKind;

/// One tool, as a model is told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// For the icon.
    pub kind: ToolKind,
    /// What it does to the world.
    pub class: Class,
    /// For the model.
    pub description: &'static str,
    /// The text of a JSON schema.
    pub parameters: &'static str,
}

/// What a tool does to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Reads and searches. Runs beside other readers.
    Reader,
    /// Changes files.
    Writer,
    /// Runs commands.
    Executor,
    /// Touches the session only: its plan, its jobs, its user.
    Session,
}

/// All tools that live here, in the order the model sees them.
pub const fn catalogue() -> &'static [Tool] {
    CATALOGUE
}

/// The tools of the `light` preset, in the same order.
///
/// The tools of a goal are among them: they are offered always, so that the list stays the same. So
/// is the plan, without which plan mode would end nowhere.
pub fn light() -> impl Iterator<Item = &'static Tool> {
    const NAMES: [&str; 11] = [
        "ask",
        "bash",
        "bash_output",
        "edit_file",
        "kill_shell",
        "read_file",
        "todo_write",
        "wait",
        "write_file",
        "update_goal",
        "complete_step",
    ];
    CATALOGUE.iter().filter(|tool| NAMES.contains(&tool.name))
}

/// The tool of this name.
pub fn find(name: &str) -> Option<&'static Tool> {
    CATALOGUE.iter().find(|tool| tool.name == name)
}

static CATALOGUE: &[Tool] = &[
    Tool {
        name: "read_file",
        kind: ToolKind::Read,
        class: Class::Reader,
        description: "Reads a text file. Lines come as `<number>→<text>`, numbered from 1; the \
                      numbers and the arrow are not part of the file. A long file is given in \
                      parts: the last line then names the offset of the next one.",
        parameters: r#"{"type":"object","properties":{"path":{"type":"string","description":"Absolute, or relative to the working directory"},"offset":{"type":"integer","minimum":0,"description":"Lines to skip; default 0"},"limit":{"type":"integer","minimum":1,"description":"Lines to read; default 2000"}},"required":["path"]}"#,
    },
    Tool {
        name: "write_file",
        kind: ToolKind::Edit,
        class: Class::Writer,
        description: "Makes a file, or replaces all of an existing one. Missing directories are \
                      made. To change a part of a file use edit_file. Fails if the file changed \
                      since you read it.",
        parameters: r#"{"type":"object","properties":{"path":{"type":"string","description":"Absolute, or relative to the working directory"},"content":{"type":"string","description":"The whole new text"}},"required":["path","content"]}"#,
    },
    Tool {
        name: "edit_file",
        kind: ToolKind::Edit,
        class: Class::Writer,
        description: "Replaces a text in a file. old_string is taken literally, must be exactly \
                      as it stands in the file (indentation too, without line numbers), and must \
                      occur once unless replace_all is set: add lines around it to make it unique. \
                      Read the file first.",
        parameters: r#"{"type":"object","properties":{"path":{"type":"string","description":"Absolute, or relative to the working directory"},"old_string":{"type":"string","description":"The text to replace; not empty"},"new_string":{"type":"string","description":"What to put there; may be empty"},"replace_all":{"type":"boolean","description":"Replace every occurrence; default false"}},"required":["path","old_string","new_string"]}"#,
    },
    Tool {
        name: "multi_edit",
        kind: ToolKind::Edit,
        class: Class::Writer,
        description: "Makes several replacements in one file, in order, each on the result of the \
                      one before and by the rules of edit_file. If one fails nothing is written.",
        parameters: r#"{"type":"object","properties":{"path":{"type":"string","description":"Absolute, or relative to the working directory"},"edits":{"type":"array","minItems":1,"items":{"type":"object","properties":{"old_string":{"type":"string"},"new_string":{"type":"string"},"replace_all":{"type":"boolean"}},"required":["old_string","new_string"]}}},"required":["path","edits"]}"#,
    },
    Tool {
        name: "notebook_edit",
        kind: ToolKind::Edit,
        class: Class::Writer,
        description: "Changes one cell of a Jupyter notebook (.ipynb): replaces its source \
                      (outputs of a code cell are cleared), inserts a new cell after it (without \
                      a cell: as the first), or deletes it. All else in the file stays as it is. \
                      Read the file first.",
        parameters: r#"{"type":"object","properties":{"path":{"type":"string","description":"Absolute, or relative to the working directory"},"cell_id":{"type":"string","description":"The id of the cell"},"cell_number":{"type":"integer","minimum":0,"description":"Its place, from 0, if it has no id"},"edit_mode":{"type":"string","enum":["replace","insert","delete"],"description":"Default replace"},"cell_type":{"type":"string","enum":["code","markdown","raw"],"description":"Of a new cell; with replace, if it changes"},"new_source":{"type":"string","description":"The whole source, with replace and insert"}},"required":["path"]}"#,
    },
    Tool {
        name: "move_file",
        kind: ToolKind::Edit,
        class: Class::Writer,
        description: "Moves or renames a file or directory. Never replaces an existing one. \
                      Missing directories are made.",
        parameters: r#"{"type":"object","properties":{"source_path":{"type":"string"},"destination_path":{"type":"string"}},"required":["source_path","destination_path"]}"#,
    },
    Tool {
        name: "delete_file",
        kind: ToolKind::Delete,
        class: Class::Writer,
        description: "Deletes one file or link; no directory.",
        parameters: r#"{"type":"object","properties":{"path":{"type":"string","description":"Absolute, or relative to the working directory"}},"required":["path"]}"#,
    },
    Tool {
        name: "ls",
        kind: ToolKind::Read,
        class: Class::Reader,
        description: "Lists a directory. Directories end in `/`, links in `@`.",
        parameters: r#"{"type":"object","properties":{"path":{"type":"string","description":"Default: the working directory"}}}"#,
    },
    Tool {
        name: "glob",
        kind: ToolKind::Read,
        class: Class::Reader,
        description: "Finds files by name, newest first. Files that ignore rules exclude are left \
                      out.",
        parameters: r#"{"type":"object","properties":{"pattern":{"type":"string","description":"Such as `**/*.rs` or `src/*.{ts,tsx}`"},"path":{"type":"string","description":"Where to look; default: the working directory"}},"required":["pattern"]}"#,
    },
    Tool {
        name: "grep",
        kind: ToolKind::Search,
        class: Class::Reader,
        description: "Finds lines that match a regular expression (RE2 syntax: no look-around, no \
                      back-references). Hits come as `path:line:text`. Files that ignore rules \
                      exclude and binary files are left out.",
        parameters: r#"{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string","description":"A directory or file; default: the working directory"},"glob":{"type":"string","description":"Only files that match, such as `*.rs`"},"timeout_seconds":{"type":"integer","minimum":1,"maximum":300,"description":"Default 30"}},"required":["pattern"]}"#,
    },
    Tool {
        name: "bash",
        kind: ToolKind::Execute,
        class: Class::Executor,
        description: "Runs a command line in a shell of its own: variables and `cd` do not carry \
                      over. There is no terminal and no input. Long output is cut in the middle. \
                      For files use the file tools.",
        parameters: r#"{"type":"object","properties":{"command":{"type":"string"},"workdir":{"type":"string","description":"Default: the working directory"},"timeout_seconds":{"type":"number","exclusiveMinimum":0,"description":"Default 120, at most 3600"},"run_in_background":{"type":"boolean","description":"Return at once with a job id for bash_output, wait and kill_shell"}},"required":["command"]}"#,
    },
    Tool {
        name: "bash_output",
        kind: ToolKind::Execute,
        class: Class::Session,
        description: "Gives the output of a background command since it was last asked for, and \
                      whether it still runs.",
        parameters: r#"{"type":"object","properties":{"job_id":{"type":"string"}},"required":["job_id"]}"#,
    },
    Tool {
        name: "kill_shell",
        kind: ToolKind::Execute,
        class: Class::Session,
        description: "Ends a background command and all it started.",
        parameters: r#"{"type":"object","properties":{"job_id":{"type":"string"}},"required":["job_id"]}"#,
    },
    Tool {
        name: "wait",
        kind: ToolKind::Other,
        class: Class::Session,
        description: "Waits until background commands have ended, then gives their new output.",
        parameters: r#"{"type":"object","properties":{"job_ids":{"type":"array","items":{"type":"string"},"description":"Default: all that run"},"timeout_seconds":{"type":"number","exclusiveMinimum":0,"description":"Default 120, at most 3600"}}}"#,
    },
    Tool {
        name: "todo_write",
        kind: ToolKind::Edit,
        class: Class::Session,
        description: "Shows the user your plan for work of several steps; each call replaces the \
                      whole list. Keep exactly one entry in_progress while you work, and mark \
                      entries completed as soon as they are.",
        parameters: r#"{"type":"object","properties":{"todos":{"type":"array","items":{"type":"object","properties":{"content":{"type":"string"},"status":{"type":"string","enum":["pending","in_progress","completed"]},"level":{"type":"integer","minimum":0,"description":"0: a phase (default), 1: a step of it"}},"required":["content","status"]}}},"required":["todos"]}"#,
    },
    Tool {
        name: "ask",
        kind: ToolKind::Other,
        class: Class::Session,
        description: "Asks the user. Only for what you cannot find out or decide yourself. \
                      Without options the answer is free text, or what `type` says. Never ask for \
                      passwords or keys.",
        parameters: r#"{"type":"object","properties":{"questions":{"type":"array","minItems":1,"maxItems":4,"items":{"type":"object","properties":{"question":{"type":"string"},"header":{"type":"string","description":"A few words"},"options":{"type":"array","items":{"type":"object","properties":{"label":{"type":"string"},"description":{"type":"string"}},"required":["label"]}},"multi":{"type":"boolean","description":"Several can be chosen; default false"},"type":{"type":"string","enum":["text","number","yes_no"],"description":"Without options: what the answer is; default text"}},"required":["question"]}}},"required":["questions"]}"#,
    },
    Tool {
        name: "skill",
        kind: ToolKind::Read,
        class: Class::Reader,
        description: "Gives the instructions of a skill, by the name that you were told, or \
                      another file of its folder. Take up a skill before you begin work that it \
                      is for.",
        parameters: r#"{"type":"object","properties":{"name":{"type":"string"},"file":{"type":"string","description":"A file of the skill, relative to its folder; default: its instructions"}},"required":["name"]}"#,
    },
    Tool {
        name: "web_fetch",
        kind: ToolKind::Fetch,
        class: Class::Reader,
        description: "Reads one address of the web (GET, http or https, no cookies) and gives its \
                      text: pages as readable text with their links, other text as it is. \
                      Redirects are followed. Addresses of private networks and data that is no \
                      text are refused.",
        parameters: r#"{"type":"object","properties":{"url":{"type":"string","description":"Whole, such as `https://example.org/page`"}},"required":["url"]}"#,
    },
    Tool {
        name: "add_root",
        kind: ToolKind::Other,
        class: Class::Session,
        description: "Asks the person for one more folder, outside those of the session, so that \
                      you can work on files in it. Only when the task needs it: they are always \
                      asked, and home folders, system folders and folders with keys are refused.",
        parameters: r#"{"type":"object","properties":{"path":{"type":"string","description":"The folder; absolute, or relative to the working directory"},"reason":{"type":"string","description":"What it is needed for, in a sentence"}},"required":["path"]}"#,
    },
    Tool {
        name: "task",
        kind: ToolKind::Other,
        class: Class::Session,
        description: "Gives a task to a subagent, which works on it by itself and returns one \
                      answer. It has the same folders and most of your tools, but sees nothing of \
                      this conversation: say in the prompt all it needs, and what to report. For \
                      searches over many files and for work that can be described in full; what \
                      you can do in a few calls do yourself.",
        parameters: r#"{"type":"object","properties":{"description":{"type":"string","description":"The task in a few words"},"prompt":{"type":"string","description":"The whole task"},"read_only":{"type":"boolean","description":"It may read and search only; default false"}},"required":["description","prompt"]}"#,
    },
    Tool {
        name: "update_goal",
        kind: ToolKind::Other,
        class: Class::Session,
        description: "Says how it stands with the person's goal. Only in goal mode. Call it \
                      before you end an answer: `complete` when the goal is reached and checked, \
                      `blocked` when you cannot go on without the person, else `continue` with \
                      what comes next; you are then asked to go on.",
        parameters: r#"{"type":"object","properties":{"status":{"type":"string","enum":["continue","complete","blocked"]},"reason":{"type":"string","description":"Why it stands so, in a sentence"},"next_action":{"type":"string","description":"With continue: what you do next"}},"required":["status","reason"]}"#,
    },
    Tool {
        name: "complete_step",
        kind: ToolKind::Other,
        class: Class::Session,
        description: "Records that a step towards the person's goal is done, with what shows it. \
                      Only in goal mode. An open entry of the plan with the same text is marked \
                      as completed.",
        parameters: r#"{"type":"object","properties":{"step":{"type":"string","description":"The entry of the plan, word for word, or the step in a few words"},"result":{"type":"string","description":"What came of it"},"evidence":{"type":"array","items":{"type":"object","properties":{"kind":{"type":"string","enum":["verification","diff","files","manual"]},"summary":{"type":"string"},"command":{"type":"string","description":"The command that was run"},"paths":{"type":"array","items":{"type":"string"}}},"required":["kind","summary"]}},"notes":{"type":"string"}},"required":["step","result"]}"#,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn every_schema_is_json_and_every_name_is_there_once() {
        let mut names = Vec::new();
        for tool in catalogue() {
            let schema = serde_json::from_str::<&serde_json::value::RawValue>(tool.parameters);
            assert!(schema.is_ok(), "{}", tool.name);
            assert!(!tool.parameters.contains('\n'), "{}", tool.name);
            assert!(!names.contains(&tool.name), "{}", tool.name);
            names.push(tool.name);
        }
        assert_eq!(light().count(), 11);
        assert!(light().any(|tool| tool.name == "todo_write"));
    }
}
