//! What tokens cost, exactly: prices as they were written, amounts of money, and sums of both
//! tokens and money. Integers only, checked; knows no currency rates, no wire and no clock.
//!
//! | quantity | unit | bound |
//! | --- | --- | --- |
//! | [`Rate`] | 10⁻¹² of the currency for a million tokens | 9 digits before the point, 12 after |
//! | [`Amount`] | 10⁻¹⁸ of the currency | `u128`: 3.4 · 10²⁰ of the currency |
//!
//! A product of the two is a whole number of the smaller unit, so nothing is ever rounded. What
//! would not fit counts as not known; it is never cut or wrapped.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use core::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::types::Usage;
use crate::settings::Price;

/// Digits after the point of a [`Rate`].
const RATE_DIGITS: usize = 12;
/// Digits after the point of an [`Amount`]: those of a rate for a million tokens, for one token.
const AMOUNT_DIGITS: usize = RATE_DIGITS + 6;
/// Digits before the point of a [`Rate`].
const RATE_WHOLE: usize = 9;

/// A price: so much of a currency for a million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(u128);

impl Rate {
    /// Reads a decimal such as `0.27` or `3`: at most 9 digits before the point and 12 after it, no
    /// sign, no exponent. Zeros at either end do not count as digits.
    pub fn from_text(text: &str) -> Option<Self> {
        fixed(text, RATE_WHOLE, RATE_DIGITS).map(Self)
    }

    /// What so many tokens cost; `None` if that is more than an [`Amount`] holds.
    pub fn of(self, tokens: u64) -> Option<Amount> {
        self.0.checked_mul(u128::from(tokens)).map(Amount)
    }
}

/// An amount of money, in a currency that stands beside it.
///
/// Shown as a decimal without zeros at its end (`0.0123`, `12`), which is a JSON number too, and
/// written by serde as a string of that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount(u128);

impl Amount {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// Reads what [`Display`](fmt::Display) writes.
    pub fn from_text(text: &str) -> Option<Self> {
        // 21 digits before the point are the most there can be; the product is checked.
        fixed(text, 21, AMOUNT_DIGITS).map(Self)
    }

    /// The sum; `None` if it is too large.
    pub fn plus(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = 10_u128.pow(AMOUNT_DIGITS as u32);
        let (whole, part) = (self.0 / one, self.0 % one);
        if part == 0 {
            return write!(f, "{whole}");
        }
        let digits = format!("{part:0width$}", width = AMOUNT_DIGITS);
        write!(f, "{whole}.{}", digits.trim_end_matches('0'))
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::from_text(&text).ok_or_else(|| de::Error::custom("not an amount of money"))
    }
}

/// What a model costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tariff {
    currency: String,
    input: Rate,
    cached_input: Rate,
    output: Rate,
}

impl Tariff {
    /// The prices as they stand in the settings; `None` if one of them is not a price. Input that
    /// the provider had in its cache costs as much as other input unless it has a price of its own.
    pub fn new(price: &Price) -> Option<Self> {
        let input = Rate::from_text(&price.input)?;
        Some(Self {
            currency: price.currency.clone(),
            input,
            cached_input: match &price.cached_input {
                Some(cached) => Rate::from_text(cached)?,
                None => input,
            },
            output: Rate::from_text(&price.output)?,
        })
    }

    /// What one answer cost; `None` if that is more than an amount holds. What the provider does
    /// not say was cached was not.
    pub fn cost(&self, usage: &Usage) -> Option<Cost> {
        let hit = cached(usage).map_or(0, |(hit, _)| hit);
        let input = self.input.of(usage.prompt - hit)?;
        let cached = self.cached_input.of(hit)?;
        let output = self.output.of(usage.completion)?;
        Some(Cost {
            currency: self.currency.clone(),
            amount: input.plus(cached)?.plus(output)?,
        })
    }
}

/// An amount of a currency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// ISO 4217 code, as the settings have it.
    pub currency: String,
    /// How much.
    pub amount: Amount,
}

/// What answers of a model were for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UsageSource {
    /// The turn itself.
    Executor,
    /// Making the history shorter.
    Compaction,
    /// A subagent.
    Subagent,
}

impl UsageSource {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Executor, Self::Compaction, Self::Subagent];

    /// Its name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Executor => "executor",
            Self::Compaction => "compaction",
            Self::Subagent => "subagent",
        }
    }

    /// The one with this [`name`](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.name() == name)
    }
}

/// What a number of answers used and cost, of a turn or of a whole session.
///
/// Token counts stop at the largest number instead of running over. Money is summed a currency;
/// there are no more of those than the settings have prices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spend {
    prompt: u64,
    completion: u64,
    reasoning: u64,
    cache_hit: u64,
    cache_miss: u64,
    totals: BTreeMap<String, Amount>,
    answers: u64,
    unmetered: u64,
    unpriced: u64,
    source: Option<UsageSource>,
    mixed: bool,
}

impl Spend {
    /// Adds one answer. Without `usage` nobody said what it used: the sum is the least it can be.
    /// With that and without `cost` nobody said what that costs: there is no sum any more.
    pub fn add(&mut self, usage: Option<&Usage>, cost: Option<&Cost>, source: UsageSource) {
        self.answers = self.answers.saturating_add(1);
        self.mixed |= self.source.is_some_and(|before| before != source);
        self.source = Some(source);
        let Some(usage) = usage else {
            self.unmetered = self.unmetered.saturating_add(1);
            return;
        };
        self.count(usage);
        if !cost.is_some_and(|cost| self.pay(cost)) {
            self.unpriced = self.unpriced.saturating_add(1);
        }
    }

    fn count(&mut self, usage: &Usage) {
        let (hit, miss) = cached(usage).unwrap_or_default();
        for (sum, more) in [
            (&mut self.prompt, usage.prompt),
            (&mut self.completion, usage.completion),
            (&mut self.reasoning, usage.reasoning),
            (&mut self.cache_hit, hit),
            (&mut self.cache_miss, miss),
        ] {
            *sum = sum.saturating_add(more);
        }
    }

    fn pay(&mut self, cost: &Cost) -> bool {
        let before = self.totals.get(&cost.currency).copied();
        let sum = before.unwrap_or_default().plus(cost.amount);
        if let Some(sum) = sum {
            self.totals.insert(cost.currency.clone(), sum);
        }
        sum.is_some()
    }

    /// Tokens that went in, cached or not.
    pub fn prompt(&self) -> u64 {
        self.prompt
    }

    /// Tokens that came out, reasoning included.
    pub fn completion(&self) -> u64 {
        self.completion
    }

    /// Of those that came out: reasoning.
    pub fn reasoning(&self) -> u64 {
        self.reasoning
    }

    /// Of those that went in: found in a cache.
    pub fn cache_hit(&self) -> u64 {
        self.cache_hit
    }

    /// Of those that went in: not found in a cache, where the provider has one.
    pub fn cache_miss(&self) -> u64 {
        self.cache_miss
    }

    /// Tokens in all.
    pub fn tokens(&self) -> u64 {
        self.prompt.saturating_add(self.completion)
    }

    /// The part of the input that was found in a cache, as a decimal of at most four places;
    /// `None` if no provider said anything about a cache.
    pub fn cache_hit_ratio(&self) -> Option<String> {
        let all = u128::from(self.cache_hit) + u128::from(self.cache_miss);
        let part = (u128::from(self.cache_hit) * 10_000).checked_div(all)?;
        let (whole, rest) = (part / 10_000, format!("{:04}", part % 10_000));
        Some(match rest.trim_end_matches('0') {
            "" => format!("{whole}"),
            rest => format!("{whole}.{rest}"),
        })
    }

    /// How many answers this is the sum of.
    pub fn answers(&self) -> u64 {
        self.answers
    }

    /// Whether it is known of every answer what it used and what that cost.
    pub fn is_complete(&self) -> bool {
        self.unpriced == 0 && self.unmetered == 0
    }

    /// What is known to have been spent, a currency, in the order of their codes.
    pub fn totals(&self) -> impl ExactSizeIterator<Item = (&str, Amount)> {
        self.totals
            .iter()
            .map(|(currency, amount)| (currency.as_str(), *amount))
    }

    /// The sum, if there is a price for all that is known to have been used, and one currency. Of
    /// answers of which nobody said what they used, it holds nothing.
    pub fn cost(&self) -> Option<Cost> {
        let mut totals = self.totals();
        let (currency, amount) = totals.next()?;
        (self.unpriced == 0 && totals.len() == 0).then(|| Cost {
            currency: currency.into(),
            amount,
        })
    }

    /// What the answers were for: `executor` if there were none, `mixed` for several things.
    pub fn source(&self) -> &'static str {
        match self.source {
            Some(_) if self.mixed => "mixed",
            Some(source) => source.name(),
            None => UsageSource::Executor.name(),
        }
    }
}

/// What of the input was in a cache and what was not, if the provider said either.
fn cached(usage: &Usage) -> Option<(u64, u64)> {
    let hit = match (usage.cache_hit, usage.cache_miss) {
        (Some(hit), _) => hit.min(usage.prompt),
        (None, Some(miss)) => usage.prompt.saturating_sub(miss),
        (None, None) => return None,
    };
    Some((hit, usage.prompt - hit))
}

/// A decimal as a whole number of its `places`-th places.
fn fixed(text: &str, most_whole: usize, places: usize) -> Option<u128> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(part) {
        return None;
    }
    let (whole, part) = (whole.trim_start_matches('0'), part.trim_end_matches('0'));
    if whole.len() > most_whole || part.len() > places {
        return None;
    }
    let number = |text: &str| match text {
        "" => Some(0),
        text => text.parse::<u128>().ok(),
    };
    let shift = 10_u128.pow((places - part.len()) as u32);
    let part = number(part)?.checked_mul(shift)?;
    let one = 10_u128.pow(places as u32);
    number(whole)?.checked_mul(one)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn usage(prompt: u64, hit: Option<u64>, completion: u64) -> Usage {
        Usage {
            prompt,
            completion,
            cache_hit: hit,
            ..Usage::default()
        }
    }

    fn tariff(currency: &str, input: &str, cached: Option<&str>, output: &str) -> Tariff {
        Tariff::new(&Price {
            currency: currency.into(),
            input: input.into(),
            cached_input: cached.map(Into::into),
            output: output.into(),
        })
        .expect("prices")
    }

    #[test]
    fn a_price_is_a_plain_decimal_within_its_bounds() {
        for (text, units) in [
            ("0.27", Some(270_000_000_000)),
            ("3", Some(3_000_000_000_000)),
            ("0", Some(0)),
            ("0.0", Some(0)),
            ("000000000000.500000000000000000", Some(500_000_000_000)),
            ("999999999.999999999999", Some(999_999_999_999_999_999_999)),
            ("0.000000000001", Some(1)),
            ("0.0000000000001", None),
            ("1000000000", None),
            ("", None),
            (".5", None),
            ("5.", None),
            ("-1", None),
            ("+1", None),
            ("1e3", None),
            ("1,5", None),
            ("1.2.3", None),
            (" 1", None),
            ("٣", None),
        ] {
            assert_eq!(Rate::from_text(text).map(|rate| rate.0), units, "{text:?}");
        }
    }

    #[test]
    fn a_cost_is_exact_and_has_no_zeros_at_its_end() {
        #[track_caller]
        fn check(prompt: u64, hit: Option<u64>, completion: u64, cost: &str) {
            let tariff = tariff("USD", "0.27", Some("0.07"), "1.10");
            let amount = tariff.cost(&usage(prompt, hit, completion)).expect("fits");
            assert_eq!(amount.amount.to_string(), cost);
        }
        check(0, None, 0, "0");
        check(1_000_000, None, 0, "0.27");
        check(1, None, 0, "0.00000027");
        check(1_000_000, Some(1_000_000), 0, "0.07");
        check(1_000_000, Some(500_000), 1_000_000, "1.27");
        check(10_000_000, None, 3_000_000, "6");
        // More in the cache than went in is not believed.
        check(1_000_000, Some(2_000_000), 0, "0.07");
    }

    #[test]
    fn cached_input_without_a_price_costs_what_other_input_costs() {
        let tariff = tariff("USD", "2", None, "0");
        let cost = tariff.cost(&usage(1_000_000, Some(1_000_000), 0));
        assert_eq!(cost.expect("fits").amount.to_string(), "2");
        let only_miss = Usage {
            prompt: 10,
            cache_miss: Some(4),
            ..Usage::default()
        };
        assert_eq!(cached(&only_miss), Some((6, 4)));
    }

    #[test]
    fn what_does_not_fit_is_not_known_rather_than_wrong() {
        let dear = tariff("USD", "999999999.999999999999", None, "0");
        assert_eq!(dear.cost(&usage(u64::MAX, None, 0)), None);
        let most = Cost {
            currency: "USD".into(),
            amount: Amount(u128::MAX),
        };
        let mut spend = Spend::default();
        let huge = usage(u64::MAX, None, 0);
        spend.add(Some(&huge), Some(&most), UsageSource::Executor);
        assert_eq!(spend.cost(), Some(most.clone()));
        spend.add(Some(&usage(7, None, 0)), Some(&most), UsageSource::Executor);
        assert!(!spend.is_complete());
        assert_eq!(spend.cost(), None);
        assert_eq!(spend.prompt(), u64::MAX);
    }

    #[test]
    fn what_is_not_known_is_told_apart_from_what_has_no_price() {
        let one = usage(1_000_000, None, 0);
        let cost = |currency| tariff(currency, "1", None, "1").cost(&one);
        let usd = cost("USD");
        let mut spend = Spend::default();
        assert!(spend.is_complete());
        assert_eq!(spend.cost(), None);
        spend.add(Some(&one), usd.as_ref(), UsageSource::Executor);
        assert_eq!(spend.cost(), usd);
        let mut unpriced = spend.clone();
        unpriced.add(Some(&one), None, UsageSource::Executor);
        assert_eq!((unpriced.is_complete(), unpriced.cost()), (false, None));
        assert_eq!(unpriced.totals().len(), 1, "what is known is still there");
        let mut unmetered = spend.clone();
        unmetered.add(None, None, UsageSource::Executor);
        assert_eq!((unmetered.is_complete(), unmetered.cost()), (false, usd));
        spend.add(Some(&one), cost("EUR").as_ref(), UsageSource::Executor);
        assert!(spend.is_complete());
        assert_eq!(spend.cost(), None, "two currencies make no sum");
        let codes: Vec<&str> = spend.totals().map(|(code, _)| code).collect();
        assert_eq!(codes, ["EUR", "USD"]);
    }

    #[test]
    fn the_ratio_of_cached_input_is_a_short_decimal() {
        #[track_caller]
        fn check(prompt: u64, hit: Option<u64>, ratio: Option<&str>) {
            let mut spend = Spend::default();
            spend.add(Some(&usage(prompt, hit, 0)), None, UsageSource::Executor);
            assert_eq!(spend.cache_hit_ratio().as_deref(), ratio);
        }
        check(10, None, None);
        check(0, Some(0), None);
        check(3, Some(1), Some("0.3333"));
        check(4, Some(3), Some("0.75"));
        check(3, Some(3), Some("1"));
        check(3, Some(0), Some("0"));
        check(u64::MAX, Some(u64::MAX), Some("1"));
    }

    #[test]
    fn the_source_says_mixed_once_they_differ() {
        let mut spend = Spend::default();
        assert_eq!(spend.source(), "executor");
        spend.add(None, None, UsageSource::Compaction);
        assert_eq!(spend.source(), "compaction");
        spend.add(None, None, UsageSource::Executor);
        assert_eq!(spend.source(), "mixed");
        spend.add(None, None, UsageSource::Executor);
        assert_eq!(spend.source(), "mixed");
    }

    proptest! {
        #[test]
        fn a_price_and_an_amount_are_read_back(units in any::<u128>(), rate in 0..10_u128.pow(21)) {
            let amount = Amount(units);
            prop_assert_eq!(Amount::from_text(&amount.to_string()), Some(amount));
            let text = serde_json::to_string(&amount).expect("json");
            prop_assert_eq!(serde_json::from_str::<Amount>(&text).ok(), Some(amount));
            let number = amount.to_string();
            prop_assert!(serde_json::from_str::<serde_json::Number>(&number).is_ok());
            let cost = Rate(rate).of(1_000_000).expect("fits").to_string();
            prop_assert_eq!(Rate::from_text(&cost), Some(Rate(rate)), "a million tokens cost it");
        }

        #[test]
        fn a_sum_is_what_all_its_parts_cost(
            answers in proptest::collection::vec((0..9_999_u64, 0..9_999_u64, 0..9_999_u64), 0..20),
        ) {
            let tariff = tariff("USD", "0.27", Some("0.07"), "1.1");
            let mut spend = Spend::default();
            let mut all = Usage::default();
            for (prompt, hit, completion) in answers {
                let one = usage(prompt, Some(hit), completion);
                let cost = tariff.cost(&one);
                spend.add(Some(&one), cost.as_ref(), UsageSource::Executor);
                all.prompt += prompt;
                all.completion += completion;
                all.cache_hit = Some(all.cache_hit.unwrap_or(0) + hit.min(prompt));
            }
            prop_assert_eq!(spend.tokens(), all.prompt + all.completion);
            prop_assert_eq!(spend.cost(), (spend.answers() > 0).then(|| tariff.cost(&all).expect("fits")));
        }
    }
}
