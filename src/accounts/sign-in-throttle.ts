import { BoundedMap } from "../foundation/base/bounded-map.ts";
import { clientKey, networkKey } from "../foundation/base/cidr.ts";
import type { Clock } from "../foundation/base/clock.ts";
import type { Tx } from "../foundation/db/open.ts";
import type { DbClock } from "../foundation/db/runtime.ts";
import type { AuditLog } from "./audit-store.ts";
import type { UserRecord } from "./user-store.ts";

interface Failures {
  count: number;
  lastMs: number;
  /** Nobody is let through before. */
  untilMs: number;
}

interface Limit {
  /** Failures without a wait. */
  readonly free: number;
  readonly delayMsMax: number;
}

const OF_PAIR: Limit = { free: 3, delayMsMax: 60_000 };
const OF_ADDRESS: Limit = { free: 20, delayMsMax: 60_000 };
/** The same for an IPv6 /48, which has 65,536 clients and often one owner. */
const OF_NETWORK_PAIR: Limit = { free: 10, delayMsMax: 60_000 };
const OF_NETWORK: Limit = { free: 60, delayMsMax: 60_000 };
/** All addresses together: many guess at one user. */
const OF_EMAIL: Limit = { free: 15, delayMsMax: 60_000 };
const DELAY_MS_MIN = 1_000;
const EXPIRES_AFTER_MS = 60 * 60 * 1000;
/** The least recently failed are evicted. */
const ENTRIES_MAX = 20_000;

const delayMsAfter = (count: number, { free, delayMsMax }: Limit) =>
  count < free ? 0 : Math.min(delayMsMax, DELAY_MS_MIN * 2 ** Math.min(20, count - free));

/** Failures by name, in memory, the least recent first. */
class FailureCounts {
  readonly #entries;

  constructor(
    private readonly clock: Clock,
    private readonly limit: Limit,
    entriesMax: number,
  ) {
    this.#entries = new BoundedMap<string, Failures>(entriesMax);
  }

  find(name: string): Failures | undefined {
    const found = this.#entries.get(name);
    return found !== undefined && this.clock.monotonicMs() - found.lastMs <= EXPIRES_AFTER_MS ? found : undefined;
  }

  /** Counts one and sets the wait after it. */
  add(name: string) {
    const count = (this.find(name)?.count ?? 0) + 1;
    const nowMs = this.clock.monotonicMs();
    this.put(name, { count, lastMs: nowMs, untilMs: nowMs + delayMsAfter(count, this.limit) });
  }

  /** Undoes the count of an attempt that was not a failure. */
  undo(name: string) {
    const found = this.#entries.get(name);
    if (found !== undefined) this.put(name, { ...found, count: Math.max(0, found.count - 1), untilMs: 0 });
  }

  put(name: string, failures: Failures) {
    this.#entries.set(name, failures);
  }

  remove(name: string) {
    this.#entries.delete(name);
  }

  waitMs(name: string): number {
    return Math.max(0, (this.find(name)?.untilMs ?? 0) - this.clock.monotonicMs());
  }

  get size(): number {
    return this.#entries.size;
  }
}

/** What an attempt counts for: a user at a client or network, or all users there. */
interface Counted {
  readonly counts: FailureCounts;
  readonly name: string;
}

/**
 * Slows sign-in attempts down, by client and by user from a client, with growing waits of at most a minute; for IPv6 also
 * by /48, with more attempts before the first wait. A user whose password is guessed from many addresses has to wait once
 * from a further one. Nobody is ever locked out: after the wait an attempt is always let through, and failures from one
 * network put no other one off.
 */
export class SignInThrottle {
  readonly #pairs: FailureCounts;
  readonly #addresses: FailureCounts;
  readonly #networkPairs: FailureCounts;
  readonly #networks: FailureCounts;
  readonly #emails: FailureCounts;

  constructor(
    private readonly clock: Clock,
    readonly entriesMax = ENTRIES_MAX,
  ) {
    this.#pairs = new FailureCounts(clock, OF_PAIR, entriesMax);
    this.#addresses = new FailureCounts(clock, OF_ADDRESS, entriesMax);
    this.#networkPairs = new FailureCounts(clock, OF_NETWORK_PAIR, entriesMax);
    this.#networks = new FailureCounts(clock, OF_NETWORK, entriesMax);
    this.#emails = new FailureCounts(clock, OF_EMAIL, entriesMax);
  }

  /**
   * How long an attempt has to wait, in ms; with 0 it is let through and counts as a failure until `succeed` or `undo`,
   * so that attempts at the same time are counted, too.
   */
  admit(email: string, clientAddress: string): number {
    const { pair, all } = this.#countedFor(email, clientAddress);
    const waitMs = Math.max(...all.map(({ counts, name }) => counts.waitMs(name)));
    if (waitMs > 0) return waitMs;
    const firstWaitMs = this.#pairs.find(pair) === undefined ? this.#firstWaitMs(email) : 0;
    if (firstWaitMs > 0) {
      const lastMs = this.clock.monotonicMs();
      this.#pairs.put(pair, { count: 0, lastMs, untilMs: lastMs + firstWaitMs });
      return firstWaitMs;
    }
    for (const { counts, name } of all) counts.add(name);
    this.#emails.add(email);
    return 0;
  }

  /** The attempt succeeded: the user from this address starts anew. */
  succeed(email: string, clientAddress: string) {
    this.undo(email, clientAddress);
    this.#pairs.remove(this.#countedFor(email, clientAddress).pair);
  }

  /** Undoes the count of an attempt that was not a failure: not decided, or with the right password and only the code missing. */
  undo(email: string, clientAddress: string) {
    for (const { counts, name } of this.#countedFor(email, clientAddress).all) counts.undo(name);
    this.#emails.undo(email);
  }

  get size(): number {
    const all = [this.#pairs, this.#addresses, this.#networkPairs, this.#networks, this.#emails];
    return all.reduce((sum, { size }) => sum + size, 0);
  }

  #firstWaitMs(email: string) {
    return delayMsAfter(this.#emails.find(email)?.count ?? 0, OF_EMAIL);
  }

  #countedFor(email: string, clientAddress: string): { readonly pair: string; readonly all: readonly Counted[] } {
    const client = clientKey(clientAddress);
    const pair = `${client} ${email}`;
    const ofClient = [
      { counts: this.#pairs, name: pair },
      { counts: this.#addresses, name: client },
    ];
    if (client === clientAddress) return { pair, all: ofClient };
    const network = networkKey(clientAddress);
    const ofNetwork = [
      { counts: this.#networkPairs, name: `${network} ${email}` },
      { counts: this.#networks, name: network },
    ];
    return { pair, all: [...ofClient, ...ofNetwork] };
  }
}

interface Noted {
  count: number;
  /** When the last entry was written. */
  readonly writtenMs: number;
}

/** An entry for each user at most this often: somebody who guesses must not fill the log. */
const STEP_MS = 60 * 60 * 1000;

type Subject = Pick<UserRecord, "id" | "accountId">;

/** Puts failed sign-ins into the audit log: the first at once, then their number every hour. */
export class FailedSignIns {
  /** By the id of the user; "" for addresses that no user has. */
  readonly #noted = new Map<string, Noted>();

  constructor(
    private readonly runtime: DbClock,
    private readonly audit: AuditLog,
  ) {}

  note(user: Subject | undefined) {
    if (this.#isCounted(user)) return;
    // Not awaited: the response must not take longer for a user who exists. A full disk must not end the process.
    this.runtime.db.commit((tx) => this.#countOrWrite(tx, user)).catch(() => undefined);
  }

  /** Another sign-in may have had its entry written while this one waited. */
  #countOrWrite(tx: Tx, user: Subject | undefined) {
    if (!this.#isCounted(user)) this.#write(tx, user, (this.#noted.get(user?.id ?? "")?.count ?? 0) + 1);
  }

  /** Counts the failure, if the last entry is young. */
  #isCounted(user: Subject | undefined) {
    const noted = this.#noted.get(user?.id ?? "");
    const isYoung = noted !== undefined && this.runtime.clock.monotonicMs() - noted.writtenMs < STEP_MS;
    if (isYoung) noted.count += 1;
    return isYoung;
  }

  /** Writes what was not written yet, before the entry of a sign-in that succeeded. */
  flush(tx: Tx, user: Subject) {
    const count = this.#noted.get(user.id)?.count ?? 0;
    if (count > 0) this.#write(tx, user, count);
  }

  #write(tx: Tx, user: Subject | undefined, failures: number) {
    this.#noted.set(user?.id ?? "", { count: 0, writtenMs: this.runtime.clock.monotonicMs() });
    const [accountId, subject] = [user?.accountId ?? null, user?.id ?? null];
    this.audit.append(tx, { action: "users.sign-in-failed", accountId, subject, after: { failures } });
  }
}
