import type { KeyMode } from "../foundation/base/secrets.ts";
import type { Db } from "../foundation/db/open.ts";

/** What an account and mode has used already. */
export interface FirstSteps {
  readonly hasKey: boolean;
  readonly hasVerified: boolean;
  readonly hasList: boolean;
  readonly hasDomain: boolean;
  readonly hasTarget: boolean;
}

export interface StepsOwner {
  readonly accountId: string;
  readonly mode: KeyMode;
}

const SQL = `SELECT
  EXISTS (SELECT 1 FROM api_keys WHERE account_id = $account AND mode = $mode AND revoked_at_ms IS NULL) AS hasKey,
  EXISTS (SELECT 1 FROM verifications WHERE account_id = $account AND mode = $mode) AS hasVerified,
  EXISTS (SELECT 1 FROM bulk_jobs WHERE account_id = $account AND mode = $mode) AS hasList,
  EXISTS (SELECT 1 FROM dmarc_domains WHERE account_id = $account AND mode = $mode AND deleted_at_ms IS NULL) AS hasDomain,
  EXISTS (SELECT 1 FROM blocklist_targets WHERE account_id = $account AND mode = $mode) AS hasTarget`;

type Row = Readonly<Record<keyof FirstSteps, 0 | 1>>;

/** Which parts of the product an account uses, for the page of first steps. */
export class FirstStepsStore {
  constructor(private readonly db: Pick<Db, "sqlite">) {}

  find({ accountId, mode }: StepsOwner): FirstSteps {
    const row = this.db.sqlite.query<Row, { account: string; mode: string }>(SQL).get({ account: accountId, mode });
    const has = (step: keyof FirstSteps): boolean => row?.[step] === 1;
    return {
      ...{ hasKey: has("hasKey"), hasVerified: has("hasVerified"), hasList: has("hasList") },
      ...{ hasDomain: has("hasDomain"), hasTarget: has("hasTarget") },
    };
  }
}
