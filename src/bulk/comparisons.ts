import { BoundedMap } from "../foundation/base/bounded-map.ts";
import { isoTime } from "../foundation/base/clock.ts";
import { AppError } from "../foundation/base/errors.ts";
import { backgroundTurn } from "../foundation/base/fair-queue.ts";
import type { Random } from "../foundation/base/secrets.ts";
import { csvLine } from "../foundation/http/csv.ts";
import { attachment, streamRows } from "../foundation/http/response.ts";
import type { Caller } from "../foundation/http/guard.ts";
import { SUB_STATUSES, type SubStatus, VERDICT_OF } from "../verify/result.ts";
import { AddressIndex, IntakeSlots, newSeed, SMALL_ROWS_MAX } from "./arrival/intake.ts";
import { fileNameOf } from "./results/job-rows.ts";
import type { JobRow, JobStore } from "./results/job-store.ts";
import type { AddressResult, ListStore } from "./results/list-store.ts";
import { cleanAddress } from "./results/results-csv.ts";
import { type Change, CHANGES } from "./results/schemas.ts";

/** Addresses by what happened to them. `unfinished`: one of the lists has no result for it. */
export type ComparisonCounts = Readonly<Record<Change | "unchanged" | "unfinished", number>>;

interface Compared {
  readonly counts: ComparisonCounts;
  /** By the position of an address in the later list: its place in `CHANGES` and 1; 0: none of them. */
  readonly changes: Uint8Array;
  /** The same: the place of its earlier result in `SUB_STATUSES` and 1; 0: none. */
  readonly before: Uint8Array;
  /** By the position of an address in the earlier list: 1 when it is gone. */
  readonly gone: Uint8Array;
}

/** Two lists and how they differ. */
export interface Comparison extends Compared {
  readonly later: JobRow;
  readonly earlier: JobRow;
}

/** The columns of the addresses of a change. */
export const CHANGE_COLUMNS = [
  "email",
  "change",
  "verdict",
  "sub_status",
  "earlier_verdict",
  "earlier_sub_status",
] as const;

const CODES: ReadonlyMap<string, number> = new Map(CHANGES.map((change, at) => [change, at + 1]));

const ADDRESSES_AT_ONCE = 2_000;
/** Comparisons that are kept: 3 MB each for lists of a million addresses. */
const KEPT_MAX = 4;

export interface ListComparisonsDeps {
  readonly jobs: Pick<JobStore, "namesakes">;
  readonly lists: Pick<ListStore, "resultsBehind">;
  readonly random: Random;
  /** The job of a caller; throws 404. */
  readonly find: (caller: Caller, id: string) => JobRow;
}

/**
 * Compares two lists of an account, address by address, in steps: a list of a million addresses takes some seconds and, while
 * it is compared, 40 MB. How many are compared at a time is limited; when too many wait, 503.
 */
export class ListComparisons {
  readonly #slots = new IntakeSlots();
  readonly #kept = new BoundedMap<string, Promise<Compared>>(KEPT_MAX);

  constructor(private readonly deps: ListComparisonsDeps) {}

  /** Older lists of the same name that have ended, newest first. */
  namesakes(job: JobRow, limit: number): readonly JobRow[] {
    return this.deps.jobs.namesakes(job, limit);
  }

  /**
   * Compares a list with another one of the caller; by default with the one before of the same name. 404 when there is none,
   * 503.
   */
  async compare(caller: Caller, id: string, otherId: string | undefined): Promise<Comparison> {
    const later = this.deps.find(caller, id);
    const earlier = otherId === undefined ? this.namesakes(later, 1)[0] : this.deps.find(caller, otherId);
    if (earlier === undefined)
      throw new AppError("not_found", { message: "There is no earlier list of this name. Name one with `with`." });
    if (earlier.id === later.id)
      throw new AppError("Invalid query", { issues: [{ path: "with", message: "Must be another job" }] });
    const key = [later, earlier]
      .map(({ number, round, addressesFinished }) => [number, round, addressesFinished])
      .join();
    const compared = this.#kept.get(key) ?? this.#compareNow(later, earlier);
    this.#kept.set(key, compared);
    compared.catch(() => this.#kept.delete(key));
    return { later, earlier, ...(await compared) };
  }

  /** The addresses of a change as a CSV, in the order of their list. */
  async *csv({ later, earlier, changes, before, gone }: Comparison, change: Change): AsyncGenerator<Uint8Array, void> {
    yield Buffer.from(csvLine(CHANGE_COLUMNS));
    const wanted = CODES.get(change);
    const isGone = change === "gone";
    const isWanted = ({ position }: AddressResult) => (isGone ? gone[position] === 1 : changes[position] === wanted);
    for await (const addresses of this.#addresses(isGone ? earlier : later)) {
      const lines = addresses.filter(isWanted).map(({ email, position, subStatus }) => {
        const earlierStatus = isGone ? subStatus : (SUB_STATUSES[(before[position] ?? 0) - 1] ?? null);
        const cells = [...cellsOf(isGone ? null : subStatus), ...cellsOf(earlierStatus)];
        return csvLine([cleanAddress(email), change, ...cells]);
      });
      yield Buffer.from(lines.join(""));
    }
  }

  async #compareNow(later: JobRow, earlier: JobRow): Promise<Compared> {
    const { accountId } = later;
    const isSmall = Math.max(later.addressesTotal, earlier.addressesTotal) <= SMALL_ROWS_MAX;
    using _slot = await this.#slots.take({ accountId, isSmall });
    // The rows without an address have a position, too.
    const [laterSize, earlierSize] = [later.addressesTotal + 1, earlier.addressesTotal + 1];
    const index = new AddressIndex(earlierSize, newSeed(this.deps.random));
    const results = new Uint8Array(earlierSize);
    for await (const addresses of this.#addresses(earlier))
      for (const { normalizedEmail, subStatus } of addresses)
        results[index.add(normalizedEmail).position] = codeOf(subStatus);

    const counts = { became_undeliverable: 0, recovered: 0, changed: 0, new: 0, gone: 0, unchanged: 0, unfinished: 0 };
    const [changes, before, seen] = [new Uint8Array(laterSize), new Uint8Array(laterSize), new Uint8Array(earlierSize)];
    for await (const addresses of this.#addresses(later))
      for (const { position, normalizedEmail, subStatus } of addresses) {
        if (normalizedEmail === "") continue;
        const found = index.find(normalizedEmail);
        const earlierStatus = found === null ? null : (SUB_STATUSES[(results[found] ?? 0) - 1] ?? null);
        if (found !== null) seen[found] = 1;
        const change = found === null ? "new" : changeOf(earlierStatus, subStatus);
        counts[change]++;
        changes[position] = CODES.get(change) ?? 0;
        before[position] = codeOf(earlierStatus);
      }

    const gone = new Uint8Array(earlierSize);
    for await (const addresses of this.#addresses(earlier))
      for (const { position, normalizedEmail } of addresses) {
        const found = normalizedEmail === "" ? null : index.find(normalizedEmail);
        if (found === null || seen[found] === 1) continue;
        gone[position] = 1;
        counts.gone++;
      }
    return { counts, changes, before, gone };
  }

  /** The addresses of a list, some at a time. */
  async *#addresses({ number, accountId }: JobRow): AsyncGenerator<readonly AddressResult[], void> {
    for (let after = -1; ;) {
      await backgroundTurn(accountId);
      const addresses = this.deps.lists.resultsBehind(number, after, ADDRESSES_AT_ONCE);
      const last = addresses.at(-1);
      if (last === undefined) return;
      yield addresses;
      after = last.position;
    }
  }
}

const codeOf = (subStatus: SubStatus | null): number => (subStatus === null ? 0 : SUB_STATUSES.indexOf(subStatus) + 1);

const cellsOf = (subStatus: SubStatus | null): readonly string[] =>
  subStatus === null ? ["", ""] : [VERDICT_OF[subStatus], subStatus];

/** What happened to an address that is in both lists. */
const changeOf = (earlier: SubStatus | null, later: SubStatus | null): Change | "unchanged" | "unfinished" => {
  if (earlier === null || later === null) return "unfinished";
  const [before, now] = [VERDICT_OF[earlier], VERDICT_OF[later]];
  if (before === now) return "unchanged";
  if (now === "undeliverable") return "became_undeliverable";
  return before === "undeliverable" && now === "deliverable" ? "recovered" : "changed";
};

/** The addresses of a change as a file of their own. */
export const sendChanges = (
  request: Request,
  comparisons: Pick<ListComparisons, "csv">,
  { comparison, change }: { readonly comparison: Comparison; readonly change: Change },
): Response => {
  const { id, name } = comparison.later;
  return streamRows(request, comparisons.csv(comparison, change), {
    "content-type": "text/csv; charset=utf-8",
    "content-disposition": attachment(fileNameOf({ id, name }, change.replaceAll("_", "-")), ".csv"),
  });
};

/** A comparison as the API shows it. */
export const comparisonView = ({ later, earlier, counts }: Comparison) => ({
  id: later.id,
  with: { id: earlier.id, name: earlier.name, created_at: isoTime(earlier.createdAtMs) },
  counts,
});
