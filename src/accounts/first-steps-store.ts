import { z } from "zod";
import type { Owner } from "../foundation/base/secrets.ts";
import type { Db, Tx } from "../foundation/db/open.ts";

/** What an account and mode has used already, and what its user does not want to see. */
export interface FirstStepFacts {
  readonly hasKey: boolean;
  readonly hasVerified: boolean;
  readonly hasList: boolean;
  readonly hasDomain: boolean;
  readonly hasTarget: boolean;
  /** Whether somebody gets the alerts of the account: by mail or at a webhook URL. */
  readonly hasAlerts: boolean;
  readonly hasColleague: boolean;
  readonly hidden: readonly string[];
}

type Flags = Omit<FirstStepFacts, "hidden">;
type FactsRow = Readonly<Record<keyof Flags, 0 | 1>> & { readonly hidden: string | null };

const FACTS = `SELECT
  EXISTS (SELECT 1 FROM api_keys WHERE account_id = $account AND mode = $mode AND revoked_at_ms IS NULL) AS hasKey,
  EXISTS (SELECT 1 FROM verifications WHERE account_id = $account AND mode = $mode) AS hasVerified,
  EXISTS (SELECT 1 FROM bulk_jobs WHERE account_id = $account AND mode = $mode) AS hasList,
  EXISTS (SELECT 1 FROM dmarc_domains WHERE account_id = $account AND mode = $mode AND deleted_at_ms IS NULL) AS hasDomain,
  EXISTS (SELECT 1 FROM blocklist_targets WHERE account_id = $account AND mode = $mode) AS hasTarget,
  EXISTS (SELECT 1 FROM account_notifications WHERE account_id = $account AND mode = $mode
    AND (webhook_url IS NOT NULL OR recipients <> '[]')) AS hasAlerts,
  (SELECT count(*) FROM users WHERE account_id = $account) > 1 AS hasColleague,
  (SELECT hidden_steps FROM users WHERE id = $user) AS hidden`;

const hiddenSchema = z.array(z.string());

/** Which parts of the product an account uses, for the first steps, and the steps that a user has hidden. */
export class FirstStepsStore {
  constructor(private readonly db: Db) {}

  find({ accountId, mode }: Owner, userId: string): FirstStepFacts {
    const row = this.db.sqlite
      .query<FactsRow, { account: string; mode: string; user: string }>(FACTS)
      .get({ account: accountId, mode, user: userId });
    const has = (fact: keyof Flags) => row?.[fact] === 1;
    return {
      hasKey: has("hasKey"),
      hasVerified: has("hasVerified"),
      hasList: has("hasList"),
      hasDomain: has("hasDomain"),
      hasTarget: has("hasTarget"),
      hasAlerts: has("hasAlerts"),
      hasColleague: has("hasColleague"),
      hidden: hiddenSchema.parse(JSON.parse(row?.hidden ?? "[]")),
    };
  }

  setHidden(_tx: Tx, userId: string, steps: readonly string[]): void {
    this.db.sqlite.query("UPDATE users SET hidden_steps = ? WHERE id = ?").run(JSON.stringify(steps), userId);
  }
}
