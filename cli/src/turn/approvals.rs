//! Who answers a permission card, and which key means what. Prints nothing, reads nothing.

use reasonix_core::protocol::schema::{PermissionOption, PermissionOptionKind};

use crate::render::styles::{BOLD, styled};
use crate::render::text::one_line;

/// Who answers cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approvals {
    /// The person at the terminal.
    Person,
    /// Nobody is there: what is asked is denied.
    Nobody,
    /// Everything asked is allowed, once each time.
    AllowAll,
}

impl Approvals {
    /// The person, if there is a terminal to ask on.
    pub fn asking() -> Self {
        match crate::terminal::somebody_there() {
            true => Self::Person,
            false => Self::Nobody,
        }
    }
}

/// A key and what it chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The key.
    pub key: char,
    /// What is shown beside it.
    pub label: String,
    /// What happens.
    pub what: Chosen,
}

/// What was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// An option of the card.
    Option {
        /// Its id.
        id: String,
        /// What it means.
        kind: PermissionOptionKind,
    },
    /// Allowed, and nothing more is asked in this run that need not be.
    Auto {
        /// The option that allows once.
        id: String,
    },
}

/// Longest label of a choice, characters.
const MAX_LABEL: usize = 80;

/// The keys for the options of a card: letters where each option means something else, digits
/// where several mean the same (a question with answers). `always` is for what is asked about whatever
/// was said before: there is no key then that asks no more.
pub fn choices(options: &[PermissionOption], always: bool) -> Vec<Choice> {
    let letters = options
        .iter()
        .enumerate()
        .all(|(at, one)| options[..at].iter().all(|other| other.kind != one.kind));
    let mut out: Vec<_> = options
        .iter()
        .zip('1'..='9')
        .map(|(option, digit)| Choice {
            key: if letters { letter(option.kind) } else { digit },
            label: one_line(&option.name, MAX_LABEL),
            what: Chosen::Option {
                id: option.option_id.clone(),
                kind: option.kind,
            },
        })
        .collect();
    let more = letters && !always;
    if let (true, Some(allow)) = (more, of_kind(options, PermissionOptionKind::AllowOnce)) {
        out.push(Choice {
            key: '!',
            label: "Allow, and ask no more in this run".into(),
            what: Chosen::Auto {
                id: allow.option_id.clone(),
            },
        });
    }
    out
}

/// What `key` chooses.
pub fn chosen(choices: &[Choice], key: char) -> Option<&Chosen> {
    let key = if key == 'A' { '!' } else { key };
    let choice = choices.iter().find(|choice| choice.key == key)?;
    Some(&choice.what)
}

/// Every key that chooses something.
pub fn wanted(choices: &[Choice]) -> Vec<char> {
    let mut keys: Vec<_> = choices.iter().map(|choice| choice.key).collect();
    if keys.contains(&'!') {
        keys.push('A');
    }
    keys
}

/// The line that names the keys.
pub fn keys_line(choices: &[Choice]) -> String {
    let parts: Vec<_> = choices
        .iter()
        .map(|choice| {
            format!(
                "{} {}",
                styled(BOLD, format_args!("[{}]", choice.key)),
                choice.label
            )
        })
        .collect();
    parts.join("   ")
}

/// The first option that means `kind`.
pub fn of_kind(
    options: &[PermissionOption],
    kind: PermissionOptionKind,
) -> Option<&PermissionOption> {
    options.iter().find(|option| option.kind == kind)
}

fn letter(kind: PermissionOptionKind) -> char {
    match kind {
        PermissionOptionKind::AllowOnce => 'a',
        PermissionOptionKind::AllowAlways => 's',
        PermissionOptionKind::RejectOnce => 'd',
        PermissionOptionKind::RejectAlways => 'n',
        _ => '0',
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PermissionOptionKind::{AllowAlways, AllowOnce, RejectOnce};

    fn option(id: &str, kind: PermissionOptionKind) -> PermissionOption {
        PermissionOption::new(id, format!("the {id}"), kind)
    }

    #[track_caller]
    fn check(options: &[PermissionOption], keys: &str) {
        let keys_of: String = choices(options, false)
            .iter()
            .map(|choice| choice.key)
            .collect();
        assert_eq!(keys_of, keys);
    }

    #[test]
    fn a_card_has_letters_and_the_key_that_asks_no_more() {
        let card = [
            option("once", AllowOnce),
            option("always", AllowAlways),
            option("no", RejectOnce),
        ];
        check(&card, "asd!");
        assert!(choices(&card, true).iter().all(|it| it.key != '!'));
        assert_eq!(wanted(&choices(&card, true)), ['a', 's', 'd']);
        let choices = choices(&card, false);
        let auto = Some(&Chosen::Auto { id: "once".into() });
        assert_eq!(chosen(&choices, '!'), auto);
        assert_eq!(chosen(&choices, 'A'), auto);
        for no_answer in ['\n', 'y', ' ', '1', '\u{4}'] {
            assert_eq!(chosen(&choices, no_answer), None, "{no_answer:?}");
        }
        assert!(keys_line(&choices).contains("the always"));
    }

    #[test]
    fn a_question_has_digits() {
        let question = [
            option("red", AllowOnce),
            option("blue", AllowOnce),
            option("none", RejectOnce),
        ];
        check(&question, "123");
    }
}
