//! Each editor: how it is told of an agent, and what it says to one first. Data.

use std::path::Path;

use clap::ValueEnum;

/// An editor, or another client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Editor {
    /// Zed.
    Zed,
    /// The IDEs of JetBrains, with AI Assistant.
    Jetbrains,
    /// Neovim, with CodeCompanion.
    Nvim,
    /// Neovim, with avante.
    Avante,
    /// Emacs, with agent-shell.
    Emacs,
    /// Visual Studio Code, with ACP Client.
    Vscode,
    /// acpx, in a shell.
    Acpx,
    /// Toad, in a terminal.
    Toad,
}

/// What is known of an editor.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Where the snippet goes.
    pub file: &'static str,
    /// What goes there; `COMMAND` and `ARGS` stand for the program and its arguments, written as the language of the
    /// file has it.
    snippet: &'static str,
    language: Language,
    /// Whether it wants the whole path of the program.
    absolute: bool,
    /// The params of its `initialize`.
    pub initialize: &'static str,
    /// Whether it signs in before anything else, with the first method that is offered.
    pub authenticates: bool,
    /// Whether it sets mode and model by the older methods before a prompt.
    pub legacy: bool,
    /// Whether it ends the agent by a signal, not by closing its input.
    pub terminates: bool,
}

/// How a file writes texts and lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Json,
    Lua,
    Lisp,
    Shell,
}

impl Editor {
    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Zed => "Zed",
            Self::Jetbrains => "JetBrains",
            Self::Nvim => "Neovim, with CodeCompanion",
            Self::Avante => "Neovim, with avante",
            Self::Emacs => "Emacs, with agent-shell",
            Self::Vscode => "Visual Studio Code, with ACP Client",
            Self::Acpx => "acpx",
            Self::Toad => "Toad",
        }
    }

    /// What is known of it.
    pub fn facts(self) -> Facts {
        match self {
            Self::Zed => Facts {
                file: "settings.json",
                snippet: r#"{ "agent_servers": { "Reasonix": { "type": "custom", "command": COMMAND, "args": [ARGS], "env": {} } } }"#,
                language: Language::Json,
                absolute: false,
                initialize: r#"{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true,"auth":{"terminal":true},"_meta":{"terminal_output":true,"terminal-auth":true}},"clientInfo":{"name":"zed","title":"Zed","version":"1.0.0"}}"#,
                authenticates: false,
                legacy: false,
                terminates: false,
            },
            Self::Jetbrains => Facts {
                file: "~/.jetbrains/acp.json",
                snippet: r#"{ "agent_servers": { "Reasonix": { "command": COMMAND, "args": [ARGS] } } }"#,
                language: Language::Json,
                absolute: true,
                initialize: r#"{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true,"_meta":{"proxy":{}}},"clientInfo":{"name":"JetBrains","version":"2026.2"}}"#,
                authenticates: false,
                legacy: true,
                terminates: false,
            },
            Self::Nvim => Facts {
                file: "init.lua",
                snippet: r#"require("codecompanion").setup({
  adapters = { acp = { reasonix = function()
    return require("codecompanion.adapters").extend("goose", {
      name = "reasonix", formatted_name = "Reasonix", commands = { default = { COMMAND, ARGS } },
    })
  end } },
  interactions = { chat = { adapter = "reasonix" } },
})"#,
                language: Language::Lua,
                absolute: false,
                initialize: r#"{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true}},"clientInfo":{"name":"CodeCompanion.nvim","version":"1.0.0"}}"#,
                authenticates: true,
                legacy: false,
                terminates: true,
            },
            Self::Avante => Facts {
                file: "init.lua",
                snippet: r#"require("avante").setup({
  provider = "reasonix",
  acp_providers = { reasonix = { command = COMMAND, args = { ARGS } } },
})"#,
                language: Language::Lua,
                absolute: false,
                initialize: r#"{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true}}}"#,
                authenticates: false,
                legacy: true,
                terminates: false,
            },
            Self::Emacs => Facts {
                file: "init.el",
                snippet: r#"(setq agent-shell-agent-configs
      (list (agent-shell-make-agent-config
             :identifier 'reasonix :mode-line-name "Reasonix" :buffer-name "Reasonix"
             :shell-prompt "Reasonix> " :shell-prompt-regexp "Reasonix> "
             :client-maker (lambda (buffer)
                             (acp-make-client :command COMMAND :command-params '(ARGS) :context-buffer buffer)))))"#,
                language: Language::Lisp,
                absolute: false,
                initialize: r#"{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true}}}"#,
                authenticates: true,
                legacy: false,
                terminates: false,
            },
            Self::Vscode => Facts {
                file: "settings.json",
                snippet: r#"{ "acp.agents": { "Reasonix": { "command": COMMAND, "args": [ARGS], "env": {} } } }"#,
                language: Language::Json,
                absolute: false,
                initialize: r#"{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true},"clientInfo":{"name":"vscode-acp-client","version":"0.2.0"}}"#,
                authenticates: false,
                legacy: false,
                terminates: true,
            },
            Self::Acpx => Facts {
                file: "a shell",
                snippet: r#"acpx --agent "COMMAND ARGS" exec "what does this project do?""#,
                language: Language::Shell,
                absolute: false,
                initialize: r#"{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true},"clientInfo":{"name":"acpx","version":"0.19.1"}}"#,
                authenticates: true,
                legacy: false,
                terminates: false,
            },
            Self::Toad => Facts {
                file: "a shell",
                snippet: r#"toad acp "COMMAND ARGS" ."#,
                language: Language::Shell,
                absolute: false,
                initialize: r#"{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true},"clientInfo":{"name":"toad","title":"Toad","version":"0.5.0"}}"#,
                authenticates: false,
                legacy: false,
                terminates: true,
            },
        }
    }
}

/// What is written into the editor's file: the program's own name if it is found by that and the editor looks for it, else
/// its path; `acp` and what was given after `--`.
pub fn snippet(editor: Editor, program: &Path, acp: &[String]) -> String {
    let name = program.file_name().unwrap_or_default();
    let found = std::env::var_os("PATH").is_some_and(|path| {
        // The first of that name is the one that would run.
        let all = std::env::split_paths(&path).map(|dir| dir.join(name));
        let first = all.into_iter().find(|it| it.is_file());
        first.and_then(|it| it.canonicalize().ok()) == program.canonicalize().ok()
    });
    let command = match found && !editor.facts().absolute {
        true => name.to_string_lossy(),
        false => program.to_string_lossy(),
    };
    let args = std::iter::once("acp").chain(acp.iter().map(String::as_str));
    filled(editor, &command, args)
}

fn filled<'a>(editor: Editor, command: &str, args: impl Iterator<Item = &'a str>) -> String {
    let Facts {
        snippet, language, ..
    } = editor.facts();
    let between = match language {
        Language::Json | Language::Lua => ", ",
        Language::Lisp | Language::Shell => " ",
    };
    let args: Vec<_> = args.map(|text| quoted(language, text)).collect();
    snippet
        .replace("COMMAND", &quoted(language, command))
        .replace("ARGS", &args.join(between))
}

/// `text` as the language writes it.
fn quoted(language: Language, text: &str) -> String {
    match language {
        Language::Json => serde_json::to_string(text).expect("text is JSON"),
        Language::Lua | Language::Lisp => {
            format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
        }
        // Inside the double quotes of the snippet, as one word of the command line in it.
        Language::Shell => match text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c))
        {
            true => text.into(),
            false => {
                let mut word = String::from("'");
                for c in text.chars() {
                    match c {
                        '\'' => word.push_str("'\\\\''"),
                        '"' | '\\' | '$' | '`' => word.extend(['\\', c]),
                        c => word.push(c),
                    }
                }
                word.push('\'');
                word
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(editor: Editor) -> String {
        let command = match editor.facts().absolute {
            true => "/path/to/reasonix",
            false => "reasonix",
        };
        filled(editor, command, std::iter::once("acp"))
    }

    /// The profiles that the tests play clients by are the same clients.
    #[test]
    fn the_profiles_of_clients_and_the_doctor_say_the_same() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/profiles");
        let files = std::fs::read_dir(folder).expect("it is there").flatten();
        let texts = files.map(|file| std::fs::read_to_string(file.path()).expect("text"));
        let profiles: Vec<serde_json::Value> = texts
            .map(|text| serde_json::from_str(&text).expect("JSON"))
            .collect();
        for editor in Editor::value_variants() {
            let value = editor.to_possible_value().expect("none is hidden");
            let mut mine = profiles
                .iter()
                .filter(|it| it["doctor"] == value.get_name());
            let (Some(profile), None) = (mine.next(), mine.next()) else {
                panic!("one profile: {editor:?}");
            };
            let facts = editor.facts();
            let first: serde_json::Value = serde_json::from_str(facts.initialize).expect("JSON");
            assert_eq!(profile["initialize"], first, "{editor:?}");
            let at_once = profile["signs_in"] == "at once";
            assert_eq!(at_once, facts.authenticates, "{editor:?}");
            let methods = profile["before_prompt"].as_array().expect("a list");
            let legacy = methods.iter().any(|method| method == "session/set_model");
            assert_eq!(legacy, facts.legacy, "{editor:?}");
            let terminated = profile["ends"] == "termination";
            assert_eq!(terminated, facts.terminates, "{editor:?}");
        }
    }

    #[test]
    fn who_wants_a_whole_path_gets_one_though_the_name_is_found() {
        let program = std::env::split_paths(&std::env::var_os("PATH").expect("set"))
            .map(|dir| dir.join("sh"))
            .find(|it| it.is_file())
            .expect("there is a shell");
        let path = program.to_string_lossy();
        let given = snippet(Editor::Jetbrains, &program, &[]);
        assert!(given.contains(&format!("\"{path}\"")), "{given}");
        let given = snippet(Editor::Zed, &program, &[]);
        assert!(given.contains("\"sh\""), "{given}");
    }

    #[test]
    fn the_readme_and_the_page_on_editors_say_the_same() {
        for page in ["README.md", "docs/editors.md"] {
            let path = format!("{}/../{page}", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(path).expect("it is there");
            for editor in Editor::value_variants() {
                let snippet = plain(*editor);
                assert!(text.contains(&snippet), "{page}: {editor:?}: {snippet}");
            }
        }
    }

    #[test]
    fn the_page_on_editors_names_the_check_of_each() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/editors.md");
        let text = std::fs::read_to_string(path).expect("it is there");
        for editor in Editor::value_variants() {
            let value = editor.to_possible_value().expect("none is hidden");
            let check = format!("`reasonix doctor --editor {}`", value.get_name());
            assert!(text.contains(&check), "{check}");
        }
    }

    #[test]
    fn what_an_editor_says_first_is_json() {
        for editor in Editor::value_variants() {
            let facts = editor.facts();
            serde_json::from_str::<serde::de::IgnoredAny>(facts.initialize).expect("JSON");
        }
    }

    #[test]
    fn arguments_keep_their_meaning_in_every_language() {
        let odd = ["acp", "--model", r#"script:/a "b"\c$d"#];
        for (editor, want) in [
            (
                Editor::Zed,
                r#""args": ["acp", "--model", "script:/a \"b\"\\c$d"]"#,
            ),
            (
                Editor::Nvim,
                r#"{ "/x y/r", "acp", "--model", "script:/a \"b\"\\c$d" }"#,
            ),
            (
                Editor::Emacs,
                r#":command-params '("acp" "--model" "script:/a \"b\"\\c$d")"#,
            ),
            (
                Editor::Acpx,
                r#""'/x y/r' acp --model 'script:/a \"b\"\\c\$d'""#,
            ),
        ] {
            let snippet = filled(editor, "/x y/r", odd.into_iter());
            assert!(snippet.contains(want), "{snippet}");
        }
    }
}
