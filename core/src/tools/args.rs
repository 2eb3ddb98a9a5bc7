//! Arguments of tool calls: read with errors that name the parameter.
