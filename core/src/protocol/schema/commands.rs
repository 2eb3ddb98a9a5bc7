//! Slash commands (ACP page: slash commands). They arrive as ordinary prompt text.

use alloc::string::String;
use alloc::vec::Vec;

use super::object::object;

object! {
    /// `available_commands_update`: the whole list, in place of the last one.
    AvailableCommandsUpdate {
        /// The commands.
        "availableCommands" available_commands: Vec<AvailableCommand> = LenientListShown,
        ;
    }
}

object! {
    /// A command.
    AvailableCommand {
        /// Its name, without the slash.
        "name" name: String = Required,
        /// What it does.
        "description" description: String = Required,
        ;
        /// What may follow its name; none: nothing.
        "input" input: Option<AvailableCommandInput> = Lenient,
    }
}

object! {
    /// Text that may follow a command's name.
    AvailableCommandInput {
        /// Shown while there is none.
        "hint" hint: String = Required,
        ;
    }
}
