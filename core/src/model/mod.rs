//! One answer of a model: the provider's dialect, its retries, and the scripted model. Knows
//! nothing of ACP and of tools.
