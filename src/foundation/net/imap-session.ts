import type { ImapFlow } from "imapflow";
import type { Clock } from "../base/clock.ts";
import { waitFor } from "../base/wait.ts";
import {
  failureOfCommand,
  failureOfConnect,
  ImapFailure,
  serverText,
  createImapClient,
  IMAP_CONNECT_MS_MAX,
  IMAP_MESSAGE_BYTES_MAX,
  type ImapLogin,
  type ImapUrl,
} from "./imap-client.ts";
import { type ImapReplyLimits, limitReplies, UidSearch } from "./imap-reply-limits.ts";

/** What becomes of messages. */
export type ImapMark =
  { readonly kind: "seen" | "delete" | "keep" } | { readonly kind: "move"; readonly folder: string };

export interface ImapMessage {
  readonly uid: number;
  readonly bytes: Uint8Array;
  /** When the mailbox got it (INTERNALDATE), in milliseconds since 1970; null when the server does not say. */
  readonly deliveredAtMs: number | null;
}

const COMMAND_MS_MAX = 60_000;
/** For one message: the largest over a slow line. */
const READ_MS_MAX = 5 * 60_000;
const FOLDERS_NAMED_MAX = 20;

interface ImapSessionDeps {
  readonly clock: Clock;
  /** Without it nothing can be changed: the folder is opened by EXAMINE. */
  readonly isReadOnly?: boolean;
}

/** Connects, logs in and opens the folder. Rejects with an `ImapFailure`. The caller closes the session. */
export const openImapSession = async (login: ImapLogin, deps: ImapSessionDeps): Promise<ImapSession> => {
  const { url } = login;
  const client = await createImapClient(login);
  const session = new ImapSession(client, deps.clock, url);
  try {
    await session.connect(deps.isReadOnly === true);
    return session;
  } catch (error) {
    session.close();
    throw error;
  }
};

/**
 * One connection with one folder open. Every method rejects with an `ImapFailure`, after which the session is of no more
 * use; each has a deadline, and a limit of what the server may send. UIDs that were not requested are ignored.
 */
export class ImapSession {
  /** Rejects when the connection has ended. */
  readonly #ended = Promise.withResolvers<never>();
  /** `isThere` until the folder was searched. */
  readonly #news: { isThere: boolean } = { isThere: true };
  #notice: () => void = () => undefined;
  readonly #limits: ImapReplyLimits;
  readonly #uids: UidSearch;

  constructor(
    private readonly client: ImapFlow,
    private readonly clock: Clock,
    private readonly url: ImapUrl,
  ) {
    this.#ended.promise.catch(() => undefined);
    const end = (error?: unknown) => {
      const failure = failureOfCommand(error ?? new Error("the server closed it"), "use the mailbox");
      this.#ended.reject(failure);
      this.#notice();
    };
    this.#limits = limitReplies(client, (sentence) => {
      end(new ImapFailure("broken", sentence));
      client.close();
    });
    this.#uids = new UidSearch({
      messages: () => this.messages,
      search: (from, to) => this.#search(from, to),
      uidsAt: (from, to) => this.#uidsAt(from, to),
      refresh: () => this.#within("refresh the folder", () => client.noop()),
    });
    client.on("error", end);
    client.on("close", () => end());
    client.on("exists", () => {
      this.#news.isThere = true;
      this.#notice();
    });
  }

  /** Part of opening. */
  async connect(isReadOnly: boolean): Promise<void> {
    const { client, url } = this;
    const at = `${url.host}:${url.port}`;
    try {
      await this.#within("log in", () => client.connect(), IMAP_CONNECT_MS_MAX + COMMAND_MS_MAX);
    } catch (error) {
      throw failureOfConnect(error, at);
    }
    // A server that greets with PREAUTH would skip the TLS that the URL requires.
    if (url.security !== "none" && !client.secureConnection) {
      throw new ImapFailure("unreachable", `${at} does not offer TLS. Nothing was sent.`);
    }
    try {
      await this.#within("open the folder", () => client.mailboxOpen(url.folder, { readOnly: isReadOnly }));
    } catch (error) {
      if (!client.usable) throw failureOfCommand(error, "open the folder");
      throw new ImapFailure("folder", await this.#describeMissing(error));
    }
  }

  /** UIDVALIDITY of the folder (RFC 9051 §2.3.1.1): UIDs mean something else once it is another. */
  get uidValidity(): string {
    return this.#mailbox.uidValidity.toString();
  }

  /** How many messages the folder has. */
  get messages(): number {
    return this.#mailbox.exists;
  }

  get canIdle(): boolean {
    return this.client.capabilities.has("IDLE");
  }

  get #mailbox() {
    const { mailbox } = this.client;
    if (mailbox === false) throw new ImapFailure("broken", "The server closed the folder.");
    return mailbox;
  }

  /** The UIDs above `uid`, the smallest first, `limit` at most. */
  async uidsAfter(uid: number, limit: number): Promise<number[]> {
    this.#news.isThere = false;
    return this.#uids.after(uid, limit);
  }

  async #search(from: number, to: number | null): Promise<readonly number[]> {
    const found = await this.#within("search the folder", () =>
      this.client.search({ uid: `${from}:${to ?? "*"}` }, { uid: true }),
    );
    if (!Array.isArray(found)) throw this.#refusal("search the folder");
    return found;
  }

  async #uidsAt(from: number, to: number): Promise<Map<number, number>> {
    const uids = new Map<number, number>();
    for await (const { seq, uid } of this.#fetch(`${from}:${to}`, { uid: true }, false)) uids.set(seq, uid);
    return uids;
  }

  /** The sizes that the server gives for messages; deleted messages are absent. */
  async sizes(uids: readonly number[]): Promise<Map<number, number>> {
    const wanted = new Set(uids);
    const sizes = new Map<number, number>();
    for await (const { uid, size } of this.#fetch(uids.join(","), { uid: true, size: true })) {
      if (wanted.has(uid)) sizes.set(uid, size ?? 0);
    }
    return sizes;
  }

  /** Messages as they are, unread (BODY.PEEK), each once; those that were deleted or exceed the limit are absent. */
  async *read(uids: readonly number[]): AsyncGenerator<ImapMessage> {
    const wanted = new Set(uids);
    const source = { start: 0, maxLength: IMAP_MESSAGE_BYTES_MAX + 1 };
    for await (const { uid, source: bytes, internalDate } of this.#fetch(uids.join(","), {
      uid: true,
      internalDate: true,
      source,
    })) {
      if (!wanted.delete(uid) || bytes === undefined || bytes.byteLength > IMAP_MESSAGE_BYTES_MAX) continue;
      const deliveredAtMs = new Date(internalDate ?? Number.NaN).getTime();
      yield { uid, bytes, deliveredAtMs: Number.isNaN(deliveredAtMs) ? null : deliveredAtMs };
    }
  }

  /** Flags, moves or deletes messages; those that were deleted are ignored. False when the server refuses. */
  async mark(uids: readonly number[], mark: ImapMark): Promise<boolean> {
    if (uids.length === 0 || mark.kind === "keep") return true;
    const done = await this.#within("mark messages", () => this.#mark(uids.join(","), mark));
    if (!this.client.usable) throw new ImapFailure("broken", "The connection broke while messages were marked.");
    return done;
  }

  async #mark(uids: string, mark: ImapMark): Promise<boolean> {
    const { client } = this;
    switch (mark.kind) {
      case "keep":
        return true;
      case "seen":
        return await client.messageFlagsAdd(uids, ["\\Seen"], { uid: true });
      case "move":
        return (await client.messageMove(uids, mark.folder, { uid: true })) !== false;
      case "delete":
        // Without UIDPLUS (RFC 4315) EXPUNGE would also remove what others have marked.
        return client.capabilities.has("UIDPLUS")
          ? await client.messageDelete(uids, { uid: true })
          : await client.messageFlagsAdd(uids, ["\\Deleted"], { uid: true });
      default:
        return mark satisfies never;
    }
  }

  /** Creates a folder unless it exists. A refusal shows when something is moved. */
  async ensureFolder(folder: string): Promise<void> {
    await this.#within("create a folder", async () => {
      try {
        await this.client.mailboxCreate(folder);
      } catch (error) {
        if (!this.client.usable) throw error;
      }
    });
  }

  /** Resolves when the server reports something new (IDLE, RFC 2177), after `ms`, or when the signal fires. */
  async untilNews(ms: number, signal: AbortSignal): Promise<void> {
    if (this.#news.isThere) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#notice = resolve;
    try {
      // IDLE ends with the next command; its failure ends the connection, which is noticed.
      this.#limits.begin("wait for new messages");
      if (this.canIdle) this.client.idle().catch(() => undefined);
      await waitFor(this.clock, Promise.race([promise, this.#ended.promise]), { timeoutMs: ms, signal });
    } finally {
      this.#notice = () => undefined;
    }
  }

  /** Ends the connection immediately. */
  close(): void {
    this.client.close();
  }

  async *#fetch(range: string, query: Parameters<ImapFlow["fetch"]>[1], uid = true) {
    this.#limits.begin("read messages");
    const replies = this.client.fetch(range, query, { uid });
    for (;;) {
      const { done, value } = await this.#timely("read messages", replies.next(), READ_MS_MAX);
      if (done === true) break;
      if (value !== undefined) yield value;
    }
    if (!this.client.usable) throw new ImapFailure("broken", "The connection broke while messages were read.");
  }

  #refusal(what: string): ImapFailure {
    return this.client.usable
      ? new ImapFailure("refused", `The server refused to ${what}.`)
      : new ImapFailure("broken", `The connection broke while the service wanted to ${what}.`);
  }

  async #describeMissing(error: unknown): Promise<string> {
    const { folder } = this.url;
    const said = failureOfCommand(error, "open the folder").message;
    let listed: readonly { readonly path: string }[];
    try {
      listed = await this.#within("list the folders", () => this.client.list({ listOnly: true }));
    } catch (failed) {
      // The folder is the problem, also when the server has too many to list them.
      return `The folder "${folder}" cannot be opened. ${said} ${failureOfCommand(failed, "list the folders").message}`;
    }
    const names = listed.slice(0, FOLDERS_NAMED_MAX).map(({ path }) => `"${serverText(path)}"`);
    const more = listed.length > names.length ? ", …" : "";
    return `The folder "${folder}" cannot be opened. ${said} The folders are: ${names.join(", ")}${more}.`;
  }

  /** Runs a command under a deadline, the limits of what comes meanwhile, and the end of the connection. */
  async #within<T>(what: string, run: () => Promise<T>, msMax = COMMAND_MS_MAX): Promise<T> {
    this.#limits.begin(what);
    return this.#timely(what, run(), msMax);
  }

  async #timely<T>(what: string, running: Promise<T>, timeoutMs: number): Promise<T> {
    running.catch(() => undefined);
    try {
      const done = await waitFor(this.clock, Promise.race([running, this.#ended.promise]), { timeoutMs });
      if (done.ok) return done.value;
    } catch (error) {
      throw what === "log in" ? error : failureOfCommand(error, what);
    }
    this.client.close();
    throw new ImapFailure("broken", `The server took too long to ${what}.`);
  }
}
