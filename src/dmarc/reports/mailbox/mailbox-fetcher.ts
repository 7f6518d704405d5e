import { type Result, isDatabaseState } from "../../../foundation/base/errors.ts";
import type { Random } from "../../../foundation/base/secrets.ts";
import type { Runtime } from "../../../foundation/db/runtime.ts";
import { ImapFailure } from "../../../foundation/net/imap-failure.ts";
import type { ImapSession } from "../../../foundation/net/imap-session.ts";
import { Recurring } from "../../../foundation/base/recurring.ts";
import type { MailboxSync, MailboxSession, SyncResult } from "./mailbox-sync.ts";
import { wait, waitFor } from "../../../foundation/base/wait.ts";

/** What the fetcher uses beside the runtime. */
export interface MailboxFetcherParts {
  /** Opens the mailbox. Rejects with an `ImapFailure`. */
  readonly open: () => Promise<MailboxSession & Pick<ImapSession, "untilNews" | "close" | "messages">>;
  readonly sync: Pick<MailboxSync, "run">;
  /** The account that gets the reports; the error is a sentence. */
  readonly accountId: () => Result<string, string>;
  /** The name of the mailbox in the log. */
  readonly name: string;
}

/** How often the folder is polled: IDLE may be missing, or its connection dead. */
export const POLL_EVERY_MS = 5 * 60_000;
/** A server may report news without end; each takes a pass over the folder. */
const NEWS_WAIT_MS = 1_000;
const OPEN_WAIT_MS = 5_000;
const PAUSED_WAIT_MS = 60_000;
/** Delays after failures: doubled each time, minus a random part of up to half, so that many services do not reconnect at once. */
const RECONNECT_MS_MIN = 2_000;
const RECONNECT_MS_MAX = 5 * 60_000;
/** After failures that only the operator can fix, so that no account is locked for wrong passwords. */
const SLOW_RECONNECT_MS_MIN = 60_000;
const SLOW_RECONNECT_MS_MAX = 60 * 60_000;
/** A connection that worked for this long has recovered; before that, failures count on. */
const STEADY_MS = 60_000;
/** Failures of the connection that are no finding yet: connections end every day. */
const UNNOTICED_MAX = 2;

/** How long after a pass the next one may begin. */
const WAITS_MS: Readonly<Record<SyncResult, number>> = {
  done: NEWS_WAIT_MS,
  open: OPEN_WAIT_MS,
  paused: PAUSED_WAIT_MS,
};

/** The delay after a number of consecutive failures. */
export const reconnectDelayMs = (failures: number, isSlow: boolean, random: Random): number => {
  const [min, max] = isSlow ? [SLOW_RECONNECT_MS_MIN, SLOW_RECONNECT_MS_MAX] : [RECONNECT_MS_MIN, RECONNECT_MS_MAX];
  const delayMs = Math.min(max, min * 2 ** Math.min(failures - 1, 20));
  return delayMs - random.integer(Math.floor(delayMs / 2));
};

/** Fetches report mail from a mailbox while the service runs, and reconnects whatever happens to the connection. */
export class MailboxFetcher {
  readonly #stopping = new AbortController();
  readonly #fetching: Recurring;
  #close: () => void = () => undefined;
  #failures = 0;
  /** When the first pass of the connection was over; null before. */
  #worksSinceMs: number | null = null;
  #problem: string | null = null;
  #refusal: string | null = null;

  constructor(
    private readonly runtime: Pick<Runtime, "clock" | "log" | "random">,
    private readonly parts: MailboxFetcherParts,
  ) {
    this.#fetching = new Recurring(runtime, {
      name: "report mail fetcher",
      fields: { mailbox: parts.name },
      run: (_, succeeded) => this.#connect(succeeded),
      retryMs: () => this.#reconnectMs(false),
    });
  }

  start(): void {
    void this.#fetching.run();
  }

  /** Closes the connection; resolves when nothing is written any more. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#close();
    await this.#fetching.stop();
  }

  /** Why report mail is not fetched, or not marked, for the operator; null when it is. */
  finding(): string | null {
    const problem = this.#problem ?? this.#refusal;
    return problem === null ? null : `Reports from the mailbox: ${problem}`;
  }

  /** Notes why the server refuses to mark messages, which does not prevent fetching; null when it does not. */
  noteRefusal(refusal: string | null): void {
    this.#refusal = refusal;
  }

  /** Fetches until something ends the connection; returns when to connect again. */
  async #connect(succeeded: () => void): Promise<number> {
    try {
      const account = this.parts.accountId();
      if (!account.ok) throw new ImapFailure("settings", account.error);
      await this.#fetch(account.value, succeeded);
      return this.#reconnectMs(false);
    } catch (error) {
      if (this.#stopping.signal.aborted) return RECONNECT_MS_MIN;
      this.#failures = this.#isSteady() ? 1 : this.#failures + 1;
      if (error instanceof ImapFailure) return this.#reconnectMs(this.#note(error));
      this.#problem = isDatabaseState(error) ? "The database cannot be written." : "Internal error; see the log.";
      throw error;
    }
  }

  #reconnectMs(isSlow: boolean): number {
    return reconnectDelayMs(this.#failures, isSlow, this.runtime.random);
  }

  #isSteady(): boolean {
    return this.#worksSinceMs !== null && this.runtime.clock.monotonicMs() - this.#worksSinceMs >= STEADY_MS;
  }

  async #fetch(accountId: string, succeeded: () => void): Promise<void> {
    this.#worksSinceMs = null;
    const opening = this.parts.open();
    // The mailbox may open after the service has stopped.
    opening.then((late) => this.#stopping.signal.aborted && late.close()).catch(() => undefined);
    const opened = await waitFor(this.runtime.clock, opening, { signal: this.#stopping.signal });
    if (!opened.ok) return;
    const session = opened.value;
    this.#close = () => session.close();
    try {
      const fields = { mailbox: this.parts.name, messages: session.messages };
      this.runtime.log.info("fetching report mail by IMAP", fields);
      while (!this.#stopping.signal.aborted) {
        const result = await this.parts.sync.run(session, accountId, () => this.#stopping.signal.aborted);
        this.#worksSinceMs ??= this.runtime.clock.monotonicMs();
        this.#problem = null;
        succeeded();
        if (result === "done") await session.untilNews(POLL_EVERY_MS, this.#stopping.signal);
        await this.#wait(WAITS_MS[result]);
      }
    } finally {
      this.#close = () => undefined;
      session.close();
    }
  }

  /** Logs what went wrong, once for each problem, and makes it a finding. Returns whether only the operator can fix it. */
  #note({ kind, message }: ImapFailure): boolean {
    const { log } = this.runtime;
    const { name } = this.parts;
    const isSlow = kind === "login" || kind === "folder";
    if (!isSlow && kind !== "settings" && this.#failures <= UNNOTICED_MAX) {
      log.info("the IMAP connection ended; reconnecting", { mailbox: name, error: message });
      return false;
    }
    if (this.#problem !== message) log.warn("fetching report mail failed", { mailbox: name, error: message });
    this.#problem = message;
    return isSlow;
  }

  async #wait(ms: number): Promise<void> {
    await wait(this.runtime.clock, ms, this.#stopping.signal);
  }
}
