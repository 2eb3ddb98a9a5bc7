//! The built-in tools as pure logic: arguments → calls → result text, diff, locations. Knows
//! nothing of ACP and of models.
