import { readFileSync } from "node:fs";
import type { Clock } from "../base/clock.ts";
import { type Result, isDatabaseState, errorText } from "../base/errors.ts";
import type { Runtime } from "../db/runtime.ts";
import { runTokenCommand } from "../net/access-token.ts";
import { type ImapLogin, ImapFailure, formatImapUrl, type ImapUrl } from "../net/imap-client.ts";
import { type ImapMark, openImapSession, type ImapSession } from "../net/imap-session.ts";
import { MailboxStore, type MailboxTables } from "./mailbox-store.ts";
import {
  MailboxSync,
  type MailboxSession,
  type MailTaker,
  type SpaceReserve,
  type SyncResult,
} from "./mailbox-sync.ts";
import { MessageMarker, type ProcessedMessages } from "./message-marker.ts";
import type { Random } from "../base/secrets.ts";
import { Recurring } from "../base/recurring.ts";
import { wait, waitFor } from "../base/wait.ts";

/** A mailbox from which mail is fetched. */
export interface MailboxSettings {
  /** The name of the setting with the URL. */
  readonly setting: string;
  readonly url: ImapUrl;
  /** A file with the password, or a command that prints a token; both null when the password is in the URL. */
  readonly passwordFile: string | null;
  readonly tokenCommand: string | null;
  readonly caFile: string | null;
  readonly after: ImapMark;
  /** The name of the account that gets what is in the mails; null for the only account. */
  readonly account: string | null;
}

const SECRET_CHARACTERS_MAX = 1_024;

/** The text of a file. Throws an `ImapFailure` for the operator. */
const textOf = (path: string) => {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new ImapFailure("settings", `${path} cannot be read: ${errorText(error)}.`);
  }
};

const secretOf = async (settings: MailboxSettings, clock: Clock): Promise<ImapLogin["secret"]> => {
  const { url, passwordFile, tokenCommand } = settings;
  if (tokenCommand !== null) {
    const token = await runTokenCommand(tokenCommand, clock);
    if (!token.ok) throw new ImapFailure("settings", token.error);
    return { kind: "token", value: token.value };
  }
  const value = passwordFile === null ? (url.password ?? "") : textOf(passwordFile).replace(/\r?\n$/, "");
  if (value !== "" && value.length <= SECRET_CHARACTERS_MAX && !/\p{Cc}/u.test(value))
    return { kind: "password", value };
  throw new ImapFailure("settings", `${passwordFile ?? settings.setting} does not hold a password on one line.`);
};

/** The current credentials: files are read and the command is run at each login, so that secrets may change. */
export const imapLoginOf = async (settings: MailboxSettings, clock: Clock): Promise<ImapLogin> => ({
  url: settings.url,
  secret: await secretOf(settings, clock),
  ca: settings.caFile === null ? null : textOf(settings.caFile),
});

/** The key of the state of a mailbox. Another port or login method does not change it. */
export const mailboxNameOf = ({ url: { user, host, folder } }: MailboxSettings): string =>
  JSON.stringify([user, host, folder]);

/** How the log and the findings call what is fetched: `report mail`, `Reports`. */
export interface MailboxWords {
  readonly mail: string;
  readonly contents: string;
}

/** What the mails of a mailbox are for. */
export interface MailboxDeps {
  readonly words: MailboxWords;
  readonly tables: MailboxTables;
  readonly mail: MailTaker & ProcessedMessages;
  readonly reserve: SpaceReserve;
  /** The account that gets what is in the mails: the named one, or with null the only one. The error is a sentence. */
  readonly accountOf: (name: string | null) => Result<string, string>;
}

/** What fetches mail from a mailbox; null when none is configured. */
export const openMailbox = (
  runtime: Runtime,
  settings: MailboxSettings | null,
  { words, tables, mail, reserve, accountOf }: MailboxDeps,
): MailboxFetcher | null => {
  if (settings === null) return null;
  const { db, clock } = runtime;
  const { after } = settings;
  const store = new MailboxStore(db, tables);
  const onRefusal = (refusal: string | null) => fetcher.noteRefusal(refusal);
  const marker = new MessageMarker(runtime, { store, messages: mail, after, onRefusal });
  const fetcher: MailboxFetcher = new MailboxFetcher(runtime, {
    sync: new MailboxSync(runtime, { store, mail, reserve, marker, mailbox: mailboxNameOf(settings) }),
    words,
    name: formatImapUrl(settings.url),
    accountId: () => accountOf(settings.account),
    async open() {
      const session = await openImapSession(await imapLoginOf(settings, clock), { clock });
      if (after.kind === "move") await session.ensureFolder(after.folder);
      return session;
    },
  });
  return fetcher;
};

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

/** Fetches mail from a mailbox while the service runs, and reconnects whatever happens to the connection. */
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
    private readonly deps: {
      /** Opens the mailbox. Rejects with an `ImapFailure`. */
      open: () => Promise<MailboxSession & Pick<ImapSession, "untilNews" | "close" | "messages">>;
      sync: Pick<MailboxSync, "run">;
      words: MailboxWords;
      /** The account that gets what is in the mails; the error is a sentence. */
      accountId: () => Result<string, string>;
      /** The name of the mailbox in the log. */
      name: string;
    },
  ) {
    this.#fetching = new Recurring(runtime, {
      name: `${deps.words.mail} fetcher`,
      fields: { mailbox: deps.name },
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

  /** Why mail is not fetched, or not marked, for the operator. */
  findings(): readonly string[] {
    const problem = this.#problem ?? this.#refusal;
    return problem === null ? [] : [`${this.deps.words.contents} from the mailbox: ${problem}`];
  }

  /** Notes why the server refuses to mark messages, which does not prevent fetching; null when it does not. */
  noteRefusal(refusal: string | null): void {
    this.#refusal = refusal;
  }

  /** Fetches until something ends the connection; returns when to connect again. */
  async #connect(succeeded: () => void): Promise<number> {
    try {
      const account = this.deps.accountId();
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

  #reconnectMs(isSlow: boolean) {
    return reconnectDelayMs(this.#failures, isSlow, this.runtime.random);
  }

  #isSteady() {
    return this.#worksSinceMs !== null && this.runtime.clock.monotonicMs() - this.#worksSinceMs >= STEADY_MS;
  }

  async #fetch(accountId: string, succeeded: () => void) {
    this.#worksSinceMs = null;
    const opening = this.deps.open();
    // The mailbox may open after the service has stopped.
    opening.then((late) => this.#stopping.signal.aborted && late.close()).catch(() => undefined);
    const opened = await waitFor(this.runtime.clock, opening, { signal: this.#stopping.signal });
    if (!opened.ok) return;
    const session = opened.value;
    this.#close = () => session.close();
    try {
      const fields = { mailbox: this.deps.name, messages: session.messages };
      this.runtime.log.info(`fetching ${this.deps.words.mail} by IMAP`, fields);
      while (!this.#stopping.signal.aborted) {
        const result = await this.deps.sync.run(session, accountId, () => this.#stopping.signal.aborted);
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
  #note({ kind, message }: ImapFailure) {
    const { log } = this.runtime;
    const { name, words } = this.deps;
    const isSlow = kind === "login" || kind === "folder";
    if (!isSlow && kind !== "settings" && this.#failures <= UNNOTICED_MAX) {
      log.info("the IMAP connection ended; reconnecting", { mailbox: name, error: message });
      return false;
    }
    if (this.#problem !== message) log.warn(`fetching ${words.mail} failed`, { mailbox: name, error: message });
    this.#problem = message;
    return isSlow;
  }

  async #wait(ms: number) {
    await wait(this.runtime.clock, ms, this.#stopping.signal);
  }
}
