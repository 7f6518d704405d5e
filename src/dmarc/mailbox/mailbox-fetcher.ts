import type { Clock } from "../../base/clock.ts";
import type { Result } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Random } from "../../base/secrets.ts";
import { ImapFailure } from "../../net/imap-failure.ts";
import type { ImapSession } from "../../net/imap-session.ts";
import { isDatabaseState } from "../ingest/ingest.ts";
import type { MailboxSync, MailboxSession } from "./mailbox-sync.ts";
import { wait, waitFor } from "../../base/wait.ts";

export interface MailboxFetcherDeps {
  /** Opens the mailbox. Rejects with an `ImapFailure`. */
  readonly open: () => Promise<MailboxSession & Pick<ImapSession, "untilNews" | "close" | "messages">>;
  readonly pass: MailboxSync;
  /** Whose the reports are; the error is a sentence. */
  readonly accountId: () => Result<string, string>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** How the mailbox is called in the log. */
  readonly name: string;
}

/** How often the folder is looked at although the server said nothing: IDLE may be missing, or its connection dead. */
export const POLL_EVERY_MS = 5 * 60_000;
const OPEN_WAIT_MS = 5_000;
const PAUSED_WAIT_MS = 60_000;
/** Waits after failures: doubled each time, with a random part of up to half, so that many services do not come at once. */
const AGAIN_MS_MIN = 2_000;
const AGAIN_MS_MAX = 5 * 60_000;
/** After what only the operator can change, so that no account is locked for wrong passwords. */
const SLOW_AGAIN_MS_MIN = 60_000;
const SLOW_AGAIN_MS_MAX = 60 * 60_000;
/** Failures of the connection before they are a finding: connections end every day. */
const UNNOTICED_MAX = 2;

/** How long to wait after so many failures in a row. */
export const reconnectDelayMs = (failures: number, isSlow: boolean, random: Random): number => {
  const [min, max] = isSlow ? [SLOW_AGAIN_MS_MIN, SLOW_AGAIN_MS_MAX] : [AGAIN_MS_MIN, AGAIN_MS_MAX];
  const delayMs = Math.min(max, min * 2 ** Math.min(failures - 1, 20));
  return delayMs - random.integer(Math.floor(delayMs / 2));
};

/** Fetches report mail from a mailbox for as long as the service runs, and starts anew whatever happens to the connection. */
export class MailboxFetcher {
  readonly #stopping = new AbortController();
  #running: Promise<void> | null = null;
  #close: () => void = () => undefined;
  #failures = 0;
  #problem: string | null = null;
  #refusal: string | null = null;

  constructor(private readonly deps: MailboxFetcherDeps) {}

  start(): void {
    this.#running ??= this.#run();
  }

  /** Ends the connection; resolves when nothing is written any more. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#close();
    await this.#running;
  }

  /** Why no report mail is fetched, or not marked, for the operator; null while all is well. */
  finding(): string | null {
    const problem = this.#problem ?? this.#refusal;
    return problem === null ? null : `Reports from the mailbox: ${problem}`;
  }

  /** A refusal of the server that does not keep reports from being fetched; null when there is none any more. */
  noteRefusal(refusal: string | null): void {
    this.#refusal = refusal;
  }

  async #run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const isSlow = await this.#attempt();
      if (this.#stopping.signal.aborted) return;
      await this.#rest(reconnectDelayMs(this.#failures, isSlow, this.deps.random));
    }
  }

  /** Works until something ends it, and answers whether only the operator can change that. */
  async #attempt(): Promise<boolean> {
    try {
      const account = this.deps.accountId();
      if (!account.ok) throw new ImapFailure("settings", account.error);
      await this.#work(account.value);
      return false;
    } catch (error) {
      if (this.#stopping.signal.aborted) return false;
      this.#failures += 1;
      return this.#note(error);
    }
  }

  async #work(accountId: string): Promise<void> {
    const opening = this.deps.open();
    // Nobody waits for it once the service stops.
    opening.then((late) => this.#stopping.signal.aborted && late.close()).catch(() => undefined);
    const opened = await waitFor(this.deps.clock, opening, { signal: this.#stopping.signal });
    if (!opened.ok) return;
    const session = opened.value;
    this.#close = () => session.close();
    try {
      this.deps.log.info("fetching report mail by IMAP", { mailbox: this.deps.name, messages: session.messages });
      while (!this.#stopping.signal.aborted) {
        const result = await this.deps.pass(session, accountId, () => this.#stopping.signal.aborted);
        this.#failures = 0;
        this.#problem = null;
        if (result === "done") await session.untilNews(POLL_EVERY_MS, this.#stopping.signal);
        else await this.#rest(result === "open" ? OPEN_WAIT_MS : PAUSED_WAIT_MS);
      }
    } finally {
      this.#close = () => undefined;
      session.close();
    }
  }

  /** Says in the log and in the findings what went wrong: once for each problem, not at each try. */
  #note(error: unknown): boolean {
    const { log, name } = this.deps;
    if (!(error instanceof ImapFailure)) {
      const isState = isDatabaseState(error);
      log.error("report mail cannot be fetched", { mailbox: name, cause: error, because_of_the_database: isState });
      this.#problem = isState ? "The database cannot be written." : "An internal error. The log has its cause.";
      return false;
    }
    const { kind, message } = error;
    const isSlow = kind === "login" || kind === "folder";
    if (!isSlow && kind !== "settings" && this.#failures <= UNNOTICED_MAX) {
      log.info("the IMAP connection ended; the service connects again", { mailbox: name, why: message });
      return false;
    }
    if (this.#problem !== message) log.warn("report mail cannot be fetched", { mailbox: name, why: message });
    this.#problem = message;
    return isSlow;
  }

  async #rest(ms: number): Promise<void> {
    await wait(this.deps.clock, ms, this.#stopping.signal);
  }
}
