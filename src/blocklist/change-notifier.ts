import { insertEvent } from "../foundation/db/outbox.ts";
import type { Db, Tx } from "../foundation/db/open.ts";
import type { Severity } from "../foundation/base/severity.ts";
import { changeFacts, type ListingChange, type ListingChangeContext } from "./events.ts";
import { changeEntry } from "./listing-mails.ts";
import type { ListingMailQueue } from "./mail-queue-store.ts";
import { isSevereEnough, MAIL_SEVERITY_MIN, WEBHOOK_SEVERITY_MIN } from "./severity.ts";
import type { Owner } from "./store.ts";

/** What an account has set for all of its targets. */
export interface AlertDefaults {
  readonly recipients: readonly string[];
  /** Changes below it are not sent; null: the defaults of `severity.ts`. */
  readonly blacklistSeverityMin: Severity | null;
}

export interface ChangeNotifierDeps {
  /** Null when the service cannot send mail. */
  readonly mailQueue: ListingMailQueue | null;
  readonly findDefaults: (owner: Owner) => AlertDefaults;
}

/** Writes the events of changes and queues alert mail, in the transaction of the change. */
export class ChangeNotifier {
  constructor(
    private readonly runtime: { readonly db: Db },
    private readonly deps: ChangeNotifierDeps,
  ) {}

  /** Changes below the threshold are in the feed and the history only. Returns how many recipients mail was queued for. */
  notify(tx: Tx, changes: readonly ListingChange[], context: ListingChangeContext): number {
    if (changes.length === 0) return 0;
    const { mailQueue } = this.deps;
    const mailed = new Set<string>();
    const { before, atMs } = context;
    const { accountId, mode, webhookUrl: url } = before;
    const defaults = this.deps.findDefaults(before);
    const min = before.alertSeverityMin ?? defaults.blacklistSeverityMin;
    const recipients = mode === "test" ? [] : new Set([...before.recipients, ...defaults.recipients]);
    for (const change of changes) {
      const facts = changeFacts(change, context);
      insertEvent(this.runtime.db, tx, {
        ...{ accountId, mode, url, data: facts, createdAtMs: atMs },
        type: change.reason === null ? "blacklist.listed" : "blacklist.delisted",
        subject: `target:${facts.target_id}`,
        isFeedOnly: !isSevereEnough(facts.severity, min ?? WEBHOOK_SEVERITY_MIN),
      });
      // Users who mute a list know that its listings are removed.
      if (change.reason === "list_muted" || !isSevereEnough(facts.severity, min ?? MAIL_SEVERITY_MIN)) continue;
      if (mailQueue === null) continue;
      for (const recipient of recipients) {
        mailQueue.insert(tx, { accountId, recipient, entry: changeEntry(facts), createdAtMs: atMs });
        mailed.add(recipient);
      }
    }
    return mailed.size;
  }
}
