import type { Tx } from "../db/open.ts";
import type { Severity } from "../dnsbl/blocklist.ts";
import { alertsOf } from "./alerts.ts";
import { type ListingChange, type ListingChangeContext, eventOf, severityOfChange } from "./events.ts";
import { severityRankOf } from "./severity.ts";
import type { BlocklistStore, Owner } from "./store.ts";

/** What an account has set for all of its targets. */
export interface AlertDefaults {
  readonly recipients: readonly string[];
  /** From which severity on changes are sent; null: `WEBHOOK_SEVERITY_MIN` and `MAIL_SEVERITY_MIN`. */
  readonly blacklistSeverityMin: Severity | null;
}

export interface ChangeNotifierDeps {
  readonly store: BlocklistStore;
  /** Whether alert mail can be sent at all. */
  readonly hasMail: boolean;
  readonly findDefaults: (owner: Owner) => AlertDefaults;
}

/** Where neither the target nor the account says otherwise: programs can filter, and people are not woken for a nuisance list. */
const WEBHOOK_SEVERITY_MIN = "info";
const MAIL_SEVERITY_MIN = "medium";

/** A listing whose severity is not known any more counts as bad enough. */
const reaches = (severity: Severity | null, min: Severity): boolean =>
  severity === null || severityRankOf(severity) >= severityRankOf(min);

/**
 * Writes the events of changes, and what is to be mailed of them; call it in the transaction of the change. Changes below the
 * threshold stay in the feed and the history.
 */
export const createChangeNotifier =
  ({ store, hasMail, findDefaults }: ChangeNotifierDeps) =>
  (tx: Tx, changes: readonly ListingChange[], context: ListingChangeContext): void => {
    if (changes.length === 0) return;
    const { before } = context;
    const { recipients: ofAccount, blacklistSeverityMin } = findDefaults(before);
    const min = before.alertSeverityMin ?? blacklistSeverityMin;
    const recipients = hasMail ? [...new Set([...before.recipients, ...ofAccount])] : [];
    for (const change of changes) {
      const severity = severityOfChange(change, context);
      store.insertEvent(tx, eventOf(change, context, !reaches(severity, min ?? WEBHOOK_SEVERITY_MIN)));
      // Whoever mutes a list knows what becomes of its listings.
      if (change.reason === "list_muted" || !reaches(severity, min ?? MAIL_SEVERITY_MIN)) continue;
      for (const alert of alertsOf(change, context, recipients)) store.insertAlert(tx, alert);
    }
  };

export type NotifyChanges = ReturnType<typeof createChangeNotifier>;
