import { BoundedMap } from "../../../foundation/base/bounded-map.ts";
import { backgroundTurn } from "../../../foundation/base/fair-queue.ts";
import type { Result } from "../../../foundation/base/errors.ts";
import type { Tx } from "../../../foundation/db/open.ts";
import type { Runtime } from "../../../foundation/db/runtime.ts";
import { rows, sqlStatements } from "../../../foundation/db/statements.ts";
import { type HeaderProof, proveHeader } from "../../../foundation/dkim/signed-header.ts";
import { type MailboxFetcher, openMailbox, type MailboxSettings } from "../../../foundation/mailbox/mailbox-fetcher.ts";
import type { MailboxTables } from "../../../foundation/mailbox/mailbox-store.ts";
import type { FetchedMessage, MailTaker, SpaceReserve } from "../../../foundation/mailbox/mailbox-sync.ts";
import type { MessageFate, ProcessedMessage, ProcessedMessages } from "../../../foundation/mailbox/message-marker.ts";
import type { DnsResolver } from "../../../foundation/net/dns.ts";
import { ImapFailure } from "../../../foundation/net/imap-client.ts";
import type { Bounces } from "../bounces.ts";
import { type BounceMail, type MailOutcome, readBounceMail } from "./read-bounce-mail.ts";

/** The mailbox from which bounces are fetched. */
export interface BounceMailboxSettings extends MailboxSettings {
  /** The domains (lower-case A-labels) whose DKIM signatures prove that a message was ours; null: every bounce is believed. */
  readonly signedBy: readonly string[] | null;
}

/** Where the progress of the mailbox is stored. The item of a mark is the outcome of the message. */
export const BOUNCE_MAILBOX_TABLES: MailboxTables = {
  state: "bounce_mailboxes",
  marks: "bounce_mailbox_marks",
  item: "outcome",
};

export interface BounceMailboxDeps {
  readonly bounces: Pick<Bounces, "addMail">;
  readonly resolver: DnsResolver;
  readonly reserve: SpaceReserve;
  readonly accountOf: (name: string | null) => Result<string, string>;
}

/** What fetches bounces from a mailbox; null when none is configured. */
export const openBounceMailbox = (
  runtime: Runtime,
  settings: BounceMailboxSettings | null,
  { reserve, accountOf, ...deps }: BounceMailboxDeps,
): MailboxFetcher | null =>
  openMailbox(runtime, settings, {
    reserve,
    accountOf,
    tables: BOUNCE_MAILBOX_TABLES,
    words: { mail: "bounces", contents: "Bounces" },
    mail: new BounceMessages(runtime, { ...deps, signedBy: settings?.signedBy ?? null }),
  });

/** For this time a key that cannot be looked up keeps its message, and those behind it, from being read. */
export const KEY_WAIT_MS = 60 * 60_000;
/** A mail that waits is read again every few minutes: a failure after a longer time is of another outage. */
const ANOTHER_OUTAGE_MS = 2 * KEY_WAIT_MS;
const KEYS_KEPT_MAX = 100;

const FATES: Readonly<Record<string, MessageFate>> = {
  bounce: "done",
  notice: "doubtful",
} satisfies Partial<Record<MailOutcome, MessageFate>>;

const STATEMENTS = {
  processed: rows<{ uid: number; item: string }, [number]>(
    `SELECT uid, outcome AS item FROM bounce_mailbox_marks
      WHERE uid <= (SELECT last_uid FROM bounce_mailboxes) ORDER BY uid LIMIT ?`,
  ),
};

/**
 * The messages of the mailbox. Anybody can send mail to it: a report counts only when a signature of ours proves that the message
 * was ours, and went to this address. All other mail stays in the mailbox as it is, and nothing of it is stored.
 */
export class BounceMessages implements MailTaker, ProcessedMessages {
  readonly #sql;
  #before: Promise<void> = Promise.resolve();
  /** Keys that could not be looked up, by their names: since when, and when last. */
  readonly #unknown = new BoundedMap<string, { readonly sinceMs: number; readonly lastMs: number }>(KEYS_KEPT_MAX);

  constructor(
    private readonly runtime: Pick<Runtime, "db" | "clock" | "log">,
    private readonly deps: Pick<BounceMailboxDeps, "bounces" | "resolver"> & {
      readonly signedBy: readonly string[] | null;
    },
  ) {
    this.#sql = sqlStatements(runtime.db, STATEMENTS);
  }

  /** One message after the other, so that a folder full of reports takes no more than its turns. */
  take(message: FetchedMessage, note: (tx: Tx, item: string) => void): Promise<void> {
    const taken = this.#before.then(() => this.#take(message, note));
    this.#before = taken.catch(() => undefined);
    return taken;
  }

  /** Nothing waits: what is taken is read. */
  idle(): Promise<void> {
    return Promise.resolve();
  }

  processed(limit: number): readonly ProcessedMessage[] {
    return this.#sql.processed.all(limit).map((message) => ({ ...message, fate: FATES[message.item] ?? "left" }));
  }

  conclude(): void {
    // The mark was all that is stored of the message itself.
  }

  async #take(message: FetchedMessage, note: (tx: Tx, item: string) => void): Promise<void> {
    const { accountId, uid } = message;
    await backgroundTurn(accountId);
    const { outcome, bounces } = await this.#read(message);
    if (outcome === "unproven")
      this.runtime.log.info("a bounce in the mailbox is not of a message that your domains signed", { uid });
    await this.deps.bounces.addMail(accountId, { outcome, bounces }, (tx) => note(tx, outcome));
  }

  async #read({ accountId, bytes, deliveredAtMs }: FetchedMessage): Promise<BounceMail> {
    const { signedBy } = this.deps;
    const prove = signedBy === null ? null : (returned: Uint8Array) => this.#prove(returned, signedBy);
    const turn = () => backgroundTurn(accountId);
    const nowMs = this.runtime.clock.nowMs();
    const read = await readBounceMail(bytes, { prove, deliveredAtMs, nowMs, turn });
    if (read.outcome !== "unknown") return read;
    if (this.#waitsFor(read.key))
      throw new ImapFailure("unreachable", `The DKIM key ${read.key} could not be looked up in DNS.`);
    return { outcome: "unproven", bounces: [] };
  }

  async #prove(returned: Uint8Array, domains: readonly string[]): Promise<HeaderProof> {
    const { resolver } = this.deps;
    const proof = await proveHeader(returned, { domains, resolver, clock: this.runtime.clock });
    if (proof.kind === "signed") this.#unknown.delete(proof.key);
    return proof;
  }

  #waitsFor(key: string): boolean {
    const nowMs = this.runtime.clock.monotonicMs();
    const known = this.#unknown.get(key);
    const sinceMs = known !== undefined && nowMs - known.lastMs < ANOTHER_OUTAGE_MS ? known.sinceMs : nowMs;
    this.#unknown.set(key, { sinceMs, lastMs: nowMs });
    return nowMs - sinceMs < KEY_WAIT_MS;
  }
}
