import { isoTime } from "../foundation/base/clock.ts";
import { insertEvent } from "../foundation/db/outbox.ts";
import type { Tx } from "../foundation/db/open.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import type { Blocklist } from "./lists/blocklist.ts";
import { type DnsblHealth, type ListHealth, isProvable } from "./lists/health.ts";
import { type ChangeNotifierDeps, noticeEntry } from "./change-notifier.ts";
import type { UsabilityStore } from "./listing-store.ts";

export interface UsabilityDeps extends ChangeNotifierDeps {
  readonly store: UsabilityStore;
  readonly health: Pick<DnsblHealth, "of">;
  /** The lists in use. */
  readonly lists: readonly Blocklist[];
}

/** Accounts are notified about a change that lasted for this many tests. */
const TESTS_MIN = 2;
/** If this many lists or more are all unusable, they have one cause. */
const ALL_MIN = 3;
const RESOLVER_REMEDY =
  "Set POSTWARDEN_DNS_SERVERS to your own recursive resolver (for example unbound on this machine): most lists refuse public resolvers.";

interface JudgedList {
  readonly list: Blocklist;
  /** Null while the list can be used. */
  readonly trouble: ListHealth | null;
  /** When it was last tested. */
  readonly testedAtMs: number;
}

/** Counts the tests since a list differs from what accounts were last notified about. */
interface Differing {
  tests: number;
  testedAtMs: number;
}

/** Whether a list can be used: not if all kinds that can be tested are in trouble. Undefined before the first test. */
export const judgeList = (list: Blocklist, health: Pick<DnsblHealth, "of">): JudgedList | undefined => {
  const tested = list.kinds
    .filter((kind) => isProvable(list, kind))
    .map((kind) => health.of(list, kind))
    .filter(({ testedAtMs }) => testedAtMs !== null);
  if (tested.length === 0) return undefined;
  const isUsable = tested.some(({ state }) => state === "healthy");
  const testedAtMs = Math.max(...tested.map((one) => one.testedAtMs ?? 0));
  return { list, trouble: isUsable ? null : (tested[0] ?? null), testedAtMs };
};

/** Sentences for the operator about lists that cannot be used: a single one when all of them have one cause. */
export const usabilityFindings = (judged: readonly JudgedList[]): string[] => {
  const troubled = judged.flatMap(({ list, trouble }) => (trouble === null ? [] : [{ list, trouble }]));
  const [first] = troubled;
  if (first !== undefined && areAllUnusable(judged))
    return [
      `None of the ${troubled.length} blocklists can be used through this resolver: ${first.list.name}: ${first.trouble.reason ?? first.trouble.state} ${RESOLVER_REMEDY}`,
    ];
  return troubled.map(({ list, trouble }) =>
    [`${list.name} cannot be used: ${trouble.reason ?? trouble.state}`, trouble.remedy].filter(Boolean).join(" "),
  );
};

const areAllUnusable = (judged: readonly JudgedList[]) =>
  judged.length >= ALL_MIN && judged.every(({ trouble }) => trouble !== null);

/** Notifies the operator (log, findings) and accounts (events, mail) about lists that cannot be used, and again when they can. */
export class ListUsability {
  /** Lists that the log last reported as unusable. */
  readonly #logged = new Set<string>();
  readonly #differing = new Map<string, Differing>();

  constructor(
    private readonly runtime: Runtime,
    private readonly deps: UsabilityDeps,
  ) {}

  findings(): string[] {
    return usabilityFindings(this.#judgeAll());
  }

  /** Whether each list could be used at its last test, by id; without those that were not tested. */
  usableLists(): ReadonlyMap<string, boolean> {
    return new Map(this.#judgeAll().map(({ list, trouble }) => [list.id, trouble === null]));
  }

  /** Reads the results of the last tests, without a query. Accounts are notified once about a change that lasted. */
  async observe() {
    const judged = this.#judgeAll();
    this.#logChanges(judged);
    const notified = new Set(this.deps.store.unusableLists());
    const differs = ({ list, trouble }: JudgedList) => (trouble !== null) !== notified.has(list.id);
    const lasting = judged.filter((one) => this.#hasLasted(one, differs(one)));
    if (lasting.length === 0) return;
    const areAllUsable = judged.every(({ trouble }) => trouble === null) && notified.size >= judged.length;
    const isOneCause = judged.length >= ALL_MIN && (areAllUnusable(judged) || areAllUsable);
    const changes = isOneCause ? judged.filter(differs) : lasting;
    await this.runtime.db.commit((tx) => this.#notify(tx, changes, isOneCause));
  }

  #judgeAll(): readonly JudgedList[] {
    return this.deps.lists.flatMap((list) => judgeList(list, this.deps.health) ?? []);
  }

  #logChanges(judged: readonly JudgedList[]) {
    const { log } = this.runtime;
    const changed = judged.filter(({ list, trouble }) => (trouble !== null) !== this.#logged.has(list.id));
    for (const { list, trouble } of changed) {
      if (trouble === null) this.#logged.delete(list.id);
      else this.#logged.add(list.id);
    }
    if (areAllUnusable(judged) && changed.length > 0) {
      log.warn("no blocklist can be used", { finding: usabilityFindings(judged)[0] });
      return;
    }
    for (const { list, trouble } of changed) {
      if (trouble === null) log.info("blocklist can be used again", { list: list.id });
      else {
        const { state, reason, remedy } = trouble;
        log.warn("blocklist cannot be used", { list: list.id, state, reason, remedy });
      }
    }
  }

  #hasLasted({ list, testedAtMs }: JudgedList, isDifferent: boolean) {
    if (!isDifferent) {
      this.#differing.delete(list.id);
      return false;
    }
    const known = this.#differing.get(list.id) ?? { tests: 0, testedAtMs: 0 };
    if (testedAtMs > known.testedAtMs) this.#differing.set(list.id, { tests: known.tests + 1, testedAtMs });
    return (this.#differing.get(list.id)?.tests ?? 0) >= TESTS_MIN;
  }

  #notify(tx: Tx, changes: readonly JudgedList[], isOneCause: boolean) {
    const { store } = this.deps;
    const watched = store.watchedKinds();
    const atMs = this.runtime.clock.nowMs();
    for (const [accountId, rows] of Map.groupBy(watched, (row) => row.accountId)) {
      const own = changes.filter(({ list }) => rows.some(({ kind }) => list.kinds.includes(kind)));
      for (const change of isOneCause ? own.slice(0, 1) : own) {
        this.#notifyAccount(tx, accountId, factsOf(change, { count: isOneCause ? own.length : null, atMs }), atMs);
      }
    }
    for (const { list, trouble } of changes) {
      if (trouble === null) store.removeUnusable(tx, list.id);
      else store.keepUnusable(tx, list.id, atMs);
      this.#differing.delete(list.id);
    }
  }

  #notifyAccount(tx: Tx, accountId: string, facts: ReturnType<typeof factsOf>, atMs: number) {
    const { mailQueue, defaults } = this.deps;
    insertEvent(this.runtime.db, tx, {
      accountId,
      mode: "live",
      url: null,
      data: facts,
      createdAtMs: atMs,
      type: facts.state === "healthy" ? "blacklist.list_usable" : "blacklist.list_unusable",
      subject: `list:${facts.list ?? "all"}`,
    });
    for (const recipient of defaults.findDefaults({ accountId, mode: "live" }).recipients)
      mailQueue?.insert(tx, { accountId, recipient, entry: noticeEntry(facts), createdAtMs: atMs });
  }
}

/** The `data` of the event. `count`: how many lists have one cause; null when it concerns this list only. */
const factsOf = ({ list, trouble }: JudgedList, { count, atMs }: { count: number | null; atMs: number }) => ({
  list: count === null ? list.id : null,
  list_name: count === null ? list.name : `All ${count} blocklists`,
  kinds: list.kinds,
  state: trouble?.state ?? "healthy",
  reason: trouble?.reason ?? null,
  remedy: count !== null && trouble !== null ? RESOLVER_REMEDY : (trouble?.remedy ?? null),
  mode: "live" as const,
  checked_at: isoTime(atMs),
});
