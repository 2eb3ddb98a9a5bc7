//! What was used and what it cost, as clients are told. The only valuation is the identity: a price
//! is never converted, and nothing is fetched for it.
//!
//! | what is known | selected, `estimatedCost` | `displayStatus` | `coverage` |
//! | --- | --- | --- | --- |
//! | no answer yet | none; there is no quote | | |
//! | all, in one currency | the sum | `matched` | `full` |
//! | of some answers not what they used | the sum of the others | `matched` | `partial` |
//! | of some use no price | none | `unavailable` | `partial`, or `none` |
//! | several currencies | none; each by itself | `bucketed` | as above |

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::model::{Cost, Spend};
use crate::protocol::schema::vendor::status::{
    AggregateMode, CostQuote, DisplayStatus, Money, UsageTotals, Valuation,
};
use crate::protocol::schema::{self, Number};

/// The cost for the standard's `usage_update`, whose amounts are numbers.
pub(super) fn cost(spend: &Spend) -> Option<schema::Cost> {
    let Cost { currency, amount } = spend.cost()?;
    Some(schema::Cost::new(number(amount.to_string())?, currency))
}

/// What was used and what it cost.
pub(super) fn totals(spend: &Spend) -> UsageTotals {
    let mut totals = UsageTotals {
        prompt_tokens: spend.prompt(),
        completion_tokens: spend.completion(),
        reasoning_tokens: spend.reasoning(),
        cache_hit_tokens: spend.cache_hit(),
        cache_miss_tokens: spend.cache_miss(),
        cache_hit_ratio: spend.cache_hit_ratio().and_then(number),
        usage_source: spend.source().into(),
        ..UsageTotals::default()
    };
    if spend.answers() > 0 {
        let quote = quote(spend);
        if let Some(selected) = &quote.selected {
            totals.estimated_cost = number(selected.amount.clone());
            totals.currency = Some(selected.currency.clone());
        }
        totals.cost_complete = Some(quote.cost_complete);
        totals.display_complete = Some(quote.display_complete);
        totals.display_status = Some(quote.display_status.clone());
        totals.aggregate_mode = Some(quote.aggregate_mode.clone());
        totals.original_totals = Some(quote.original_totals.clone());
        totals.cost_quote = Some(quote);
    }
    totals
}

fn quote(spend: &Spend) -> CostQuote {
    let sums: Vec<Money> = spend
        .totals()
        .map(|(currency, amount)| Money::new(amount.to_string(), currency))
        .collect();
    let one = spend
        .cost()
        .map(|cost| Money::new(cost.amount.to_string(), cost.currency));
    let complete = spend.is_complete();
    CostQuote {
        original: one.clone(),
        valuations: sums.iter().map(identity).collect(),
        cost_complete: complete,
        display_complete: complete,
        complete,
        display_status: match (&one, sums.len()) {
            (Some(_), _) => DisplayStatus::Matched,
            (None, 0 | 1) => DisplayStatus::Unavailable,
            (None, _) => DisplayStatus::Bucketed,
        },
        aggregate_mode: if sums.len() > 1 {
            AggregateMode::CurrencyBuckets
        } else {
            AggregateMode::SingleCurrency
        },
        billing_mode: "payg".into(),
        coverage: match (sums.is_empty(), complete) {
            (true, _) => "none",
            (false, true) => "full",
            (false, false) => "partial",
        }
        .into(),
        selected: one,
        original_totals: sums,
        ..CostQuote::default()
    }
}

fn identity(sum: &Money) -> (String, Valuation) {
    let value = Valuation::new("identity", sum.amount.clone(), sum.currency.clone());
    (sum.currency.clone(), value)
}

fn number(decimal: String) -> Option<Number> {
    Number::from_text(decimal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Amount, UsageSource};

    const ONE: &str = r#"{"usage":{"prompt":10,"completion":2}}"#;

    fn spend(answers: &[Option<Option<(&str, &str)>>]) -> Spend {
        #[derive(serde::Deserialize)]
        struct Holder {
            usage: crate::model::Usage,
        }
        let usage = serde_json::from_str::<Holder>(ONE).expect("usage").usage;
        let mut spend = Spend::default();
        for answer in answers {
            let cost = answer.flatten().map(|(amount, currency)| Cost {
                currency: currency.into(),
                amount: Amount::from_text(amount).expect("an amount"),
            });
            let usage = answer.map(|_| &usage);
            spend.add(usage, cost.as_ref(), UsageSource::Executor);
        }
        spend
    }

    #[test]
    fn what_is_selected_is_what_is_known_in_one_currency() {
        #[track_caller]
        fn check(
            answers: &[Option<Option<(&str, &str)>>],
            cost: Option<(&str, &str)>,
            sums: usize,
            complete: bool,
            status: DisplayStatus,
            coverage: &str,
        ) {
            let totals = totals(&spend(answers));
            let shown = totals.estimated_cost.as_ref().map(Number::get);
            assert_eq!(shown.zip(totals.currency.as_deref()), cost);
            let quote = totals.cost_quote.expect("a quote");
            let selected = quote.selected.as_ref();
            let selected = selected.map(|m| (m.amount.as_str(), m.currency.as_str()));
            assert_eq!(selected, cost);
            assert_eq!(quote.original, quote.selected);
            assert_eq!(
                (quote.original_totals.len(), quote.valuations.len()),
                (sums, sums)
            );
            assert_eq!(
                (quote.cost_complete, quote.display_complete, quote.complete),
                (complete, complete, complete)
            );
            assert_eq!(totals.cost_complete, Some(complete));
            assert_eq!(
                (quote.display_status, quote.coverage.as_str()),
                (status, coverage)
            );
            let buckets = quote.aggregate_mode == AggregateMode::CurrencyBuckets;
            assert_eq!(buckets, sums > 1);
            for (currency, value) in &quote.valuations {
                assert_eq!(
                    (value.basis.as_str(), &value.currency),
                    ("identity", currency)
                );
            }
        }
        let usd = Some(Some(("0.25", "USD")));
        let eur = Some(Some(("1", "EUR")));
        let half = Some(("0.5", "USD"));
        check(&[usd, usd], half, 1, true, DisplayStatus::Matched, "full");
        check(
            &[usd, None, usd],
            half,
            1,
            false,
            DisplayStatus::Matched,
            "partial",
        );
        check(
            &[usd, Some(None)],
            None,
            1,
            false,
            DisplayStatus::Unavailable,
            "partial",
        );
        check(
            &[Some(None)],
            None,
            0,
            false,
            DisplayStatus::Unavailable,
            "none",
        );
        check(&[None], None, 0, false, DisplayStatus::Unavailable, "none");
        check(&[usd, eur], None, 2, true, DisplayStatus::Bucketed, "full");
        check(
            &[usd, eur, Some(None)],
            None,
            2,
            false,
            DisplayStatus::Bucketed,
            "partial",
        );
    }

    #[test]
    fn nothing_used_is_nothing_to_quote() {
        let totals = totals(&Spend::default());
        assert_eq!((totals.cost_quote, totals.cost_complete), (None, None));
        assert_eq!(cost(&Spend::default()), None);
    }

    #[test]
    fn the_standards_update_gets_a_number() {
        let cost = cost(&spend(&[Some(Some(("0.000001", "USD")))])).expect("a cost");
        let text = serde_json::to_string(&cost).expect("json");
        assert_eq!(text, r#"{"amount":0.000001,"currency":"USD"}"#);
    }
}
