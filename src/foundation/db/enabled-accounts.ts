/** An SQL condition for rows with an `account_id`: the account is not disabled. Monitoring of disabled accounts is paused. */
export const OF_ENABLED_ACCOUNT = "account_id NOT IN (SELECT id FROM accounts WHERE disabled_at_ms IS NOT NULL)";
