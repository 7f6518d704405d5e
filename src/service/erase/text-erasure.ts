import { pagesOf } from "../../foundation/base/in-steps.ts";
import type { Db, Tx } from "../../foundation/db/open.ts";
import type { AddressPattern } from "./address-pattern.ts";
import type { EraseStore, TextRow, TextTable } from "./erase-store.ts";

/** What was erased from texts: by `table.column`, the number of fields. */
export interface ErasedTexts {
  /** Fields in which the address was replaced. */
  readonly replaced: Readonly<Record<string, number>>;
  /** Rows that were removed, because the address is what they are about. */
  readonly removed: Readonly<Record<string, number>>;
  /** Fields that were left, because something would not work without them. */
  readonly kept: Readonly<Record<string, number>>;
}

/** Rows that are removed if one of these columns contains the address. */
const REMOVED: ReadonlySet<string> = new Set([
  ...[
    "idempotency_keys.idempotency_key",
    "dmarc_alert_mails.recipient",
    "bulk_mails.recipient",
    "blocklist_alerts.recipient",
    "mail_subscriptions.recipient",
  ],
  ...["dmarc_failure_reports.body", "blocklist_alerts.body"],
]);

/** Names and addresses of the operator's and the users' own configuration, which other data refers to. */
const KEPT: ReadonlySet<string> = new Set([
  ...[
    "audit_log.user",
    "audit_log.host",
    "audit_log.action",
    "accounts.name",
    "users.email",
    "dmarc_mailboxes.mailbox",
    "bounce_mailboxes.mailbox",
    "suppressions.entry",
    "dmarc_domains.token",
  ],
  ...["bulk_jobs.webhook_url", "outbox.url", "blocklist_targets.webhook_url", "dmarc_domains.webhook_url"],
  ...[
    "webhook_deliveries.url",
    "webhook_gone.url",
    "webhook_pauses.url",
    "webhook_attempts.url",
    "account_notifications.webhook_url",
  ],
]);

/** A field or row that was changed, and where it is counted once that is committed. */
interface Change {
  readonly counts: Record<string, number>;
  readonly place: string;
}

/** Columns with a JSON array of addresses, from which the address is taken. */
const RECIPIENTS = "recipients";
const ROWS_AT_ONCE = 500;

/** Erases an address from all texts of the database. */
export class TextErasure {
  readonly #replaced: Record<string, number> = {};
  readonly #removed: Record<string, number> = {};
  readonly #kept: Record<string, number> = {};
  #isPartOfOthers: boolean = false;

  constructor(
    private readonly db: Pick<Db, "commit">,
    private readonly store: EraseStore,
    private readonly pattern: AddressPattern,
  ) {}

  /** Whether a text contains the address as a part of a longer one, such as `bada@…` for `ada@…`. */
  get isPartOfOthers(): boolean {
    return this.#isPartOfOthers;
  }

  async run(): Promise<ErasedTexts> {
    for (const table of this.store.textTables()) {
      const read = (after: TextRow | undefined) => this.store.textRows(table, this.pattern.needle, after, ROWS_AT_ONCE);
      for await (const rows of pagesOf({ start: undefined, read, positionOf: (row) => row }))
        await this.#eraseRows(table, rows);
    }
    return { replaced: this.#replaced, removed: this.#removed, kept: this.#kept };
  }

  async #eraseRows(table: TextTable, rows: readonly TextRow[]): Promise<void> {
    const found = rows.filter(({ texts }) => this.#matchingColumns(texts).length > 0);
    if (found.length === 0) return;
    const changes = await this.db.commit((tx) =>
      found.flatMap((before) => {
        // Read again: a server may have changed it.
        const row = this.store.textRow(table, before);
        return row === undefined ? [] : this.#eraseRow(tx, table, row);
      }),
    );
    for (const { counts, place } of changes) counts[place] = (counts[place] ?? 0) + 1;
  }

  #matchingColumns(texts: TextRow["texts"]): string[] {
    return Object.entries(texts).flatMap(([column, text]) => {
      if (text === null) return [];
      if (this.pattern.matches(text)) return [column];
      this.#isPartOfOthers ||= text.toLowerCase().includes(this.pattern.normalized);
      return [];
    });
  }

  #eraseRow(tx: Tx, table: TextTable, row: TextRow): readonly Change[] {
    const columns = this.#matchingColumns(row.texts);
    const about = columns.map((column) => `${table.name}.${column}`).find((place) => REMOVED.has(place));
    if (about !== undefined) {
      this.store.removeRow(tx, table, row);
      return [{ counts: this.#removed, place: about }];
    }
    return columns.map((column) => {
      const place = `${table.name}.${column}`;
      if (KEPT.has(place)) return { counts: this.#kept, place };
      const before = row.texts[column] ?? "";
      const text = column === RECIPIENTS ? this.#withoutRecipient(before) : this.pattern.redact(before);
      this.store.setText(tx, table, row, { column, text });
      return { counts: this.#replaced, place };
    });
  }

  #withoutRecipient(recipients: string): string {
    const parsed: unknown = JSON.parse(recipients);
    if (!Array.isArray(parsed)) return this.pattern.redact(recipients);
    return JSON.stringify(parsed.filter((one) => typeof one !== "string" || !this.pattern.matches(one)));
  }
}
