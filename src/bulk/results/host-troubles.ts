import type { Database as Sqlite } from "bun:sqlite";
import type { Db, Tx } from "../../foundation/db/open.ts";
import { statements } from "../../foundation/db/statements.ts";
import type { MadeAttempt } from "../../verify/attempts.ts";
import { providerOf } from "../../verify/domain-evidence.ts";
import { unpackEvidence } from "../../verify/store.ts";
import type { ListStore } from "./list-store.ts";

/** What a mail host does instead of a usable reply: it refuses this service, or delays it. */
export const TROUBLES = [
  "blocked",
  "sender_rejected",
  "tls_required",
  "protocol_error",
  "unreachable",
  "timeout",
  "rate_limited",
  "greylisted",
  "temporary",
] as const;
export type Trouble = (typeof TROUBLES)[number];

/** A mail host that refused or delayed a probe. */
export interface HostTrouble {
  readonly host: string;
  readonly reading: Trouble;
}

/** What the last attempt found; null when no probe was sent. */
type LastFinding = Exclude<MadeAttempt, { readonly kind: "repeat" }>["finding"];

/** The trouble that the last attempt had; null when it had none. */
export const troubleOf = (finding: LastFinding): HostTrouble | null => {
  const reading = TROUBLES.find((trouble) => trouble === finding?.reading);
  const host = finding?.host ?? null;
  return reading === undefined || host === null ? null : { host, reading };
};

/** A kind of trouble of a host, with the number of addresses whose last trouble it is. */
export interface ListedTrouble extends HostTrouble {
  readonly number: number;
  readonly addresses: number;
  /** The position of an address whose evidence shows it. */
  readonly position: number;
}

/** Kinds of trouble that are counted of a list; its hosts beyond them are not. */
const TROUBLES_MAX = 5_000;

const prepare = (sqlite: Sqlite) =>
  statements({
    find: () =>
      sqlite.prepare<{ number: number }, [number, string, string]>(
        "SELECT number FROM bulk_troubles WHERE job = ? AND host = ? AND reading = ?",
      ),
    last: () =>
      sqlite.prepare<{ number: number | null }, [number]>(
        "SELECT max(number) AS number FROM bulk_troubles WHERE job = ?",
      ),
    insert: () =>
      sqlite.prepare<unknown, [number, number, string, string, number]>(
        "INSERT INTO bulk_troubles (job, number, host, reading, position) VALUES (?, ?, ?, ?, ?)",
      ),
    before: () =>
      sqlite.prepare<{ trouble: number | null }, [number, number]>(
        "SELECT trouble FROM bulk_addresses WHERE job = ? AND position = ?",
      ),
    mark: () =>
      sqlite.prepare<unknown, [number, number, number]>(
        "UPDATE bulk_addresses SET trouble = ? WHERE job = ? AND position = ?",
      ),
    add: () =>
      sqlite.prepare<unknown, [number, number, number, number]>(
        "UPDATE bulk_troubles SET addresses = addresses + ?, position = ? WHERE job = ? AND number = ?",
      ),
    remove: () =>
      sqlite.prepare<unknown, [number, number]>(
        "UPDATE bulk_troubles SET addresses = addresses - 1 WHERE job = ? AND number = ?",
      ),
    most: () =>
      sqlite.prepare<ListedTrouble, [number, number]>(
        `SELECT number, host, reading, addresses, position FROM bulk_troubles
      WHERE job = ? AND addresses > 0 ORDER BY addresses DESC, number LIMIT ?`,
      ),
    count: () =>
      sqlite.prepare<{ troubles: number }, [number]>(
        "SELECT count(*) AS troubles FROM bulk_troubles WHERE job = ? AND addresses > 0",
      ),
  });

/** Counts the addresses of lists that mail hosts refused or delayed. */
export class TroubleStore {
  readonly #sql;

  constructor({ sqlite }: Pick<Db, "sqlite">) {
    this.#sql = prepare(sqlite);
  }

  /** Notes the last trouble of an address; an earlier one of the same address counts no longer. */
  note(_tx: Tx, job: number, { position, host, reading }: HostTrouble & { readonly position: number }): void {
    const number = this.#numberOf(job, { position, host, reading });
    const before = this.#sql.before.get(job, position)?.trouble ?? null;
    if (number === null || before === number) return;
    if (before !== null) this.#sql.remove.run(job, before);
    this.#sql.mark.run(number, job, position);
    this.#sql.add.run(1, position, job, number);
  }

  /** The kinds of trouble of most addresses first. */
  most(job: number, limit: number): readonly ListedTrouble[] {
    return this.#sql.most.all(job, limit);
  }

  count(job: number): number {
    return this.#sql.count.get(job)?.troubles ?? 0;
  }

  /** The number of a host and its trouble; null when too many are counted already. */
  #numberOf(job: number, { position, host, reading }: HostTrouble & { readonly position: number }): number | null {
    const found = this.#sql.find.get(job, host, reading);
    if (found !== null) return found.number;
    const number = (this.#sql.last.get(job)?.number ?? 0) + 1;
    if (number > TROUBLES_MAX) return null;
    this.#sql.insert.run(job, number, host, reading, position);
    return number;
  }
}

/** A host that refused or delayed a list, for people. */
export interface ShownTrouble extends ListedTrouble {
  readonly provider: string;
  /** What the host replied to one of the addresses; null when its evidence has expired or there was no reply. */
  readonly said: string | null;
}

/** The reply that evidence has for a trouble. */
const replyIn = (body: Uint8Array, { host, reading }: HostTrouble): string | null => {
  const { attempts } = unpackEvidence(body);
  const found = attempts.findLast(({ finding }) => finding.reading === reading && (finding.host ?? host) === host);
  return found?.finding.reply ?? null;
};

/** The hosts that refused or delayed most addresses of a list, with what they said. */
export const shownTroubles = (
  { troubles, lists }: { readonly troubles: TroubleStore; readonly lists: Pick<ListStore, "findEvidence"> },
  job: number,
  limit: number,
): readonly ShownTrouble[] =>
  troubles.most(job, limit).map((trouble) => {
    const body = lists.findEvidence(job, trouble.position);
    return { ...trouble, provider: providerOf(trouble.host), said: body === undefined ? null : replyIn(body, trouble) };
  });
