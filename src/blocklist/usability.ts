import { type Clock, isoTime } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Db, Tx } from "../db/open.ts";
import type { Blocklist } from "../dnsbl/blocklist.ts";
import type { DnsblHealth, ListHealth } from "../dnsbl/health.ts";
import { isProvable } from "../dnsbl/list-test.ts";
import { noticesOf } from "./alerts.ts";
import type { ChangeNotifierDeps } from "./change-notifier.ts";
import type { BlocklistStore } from "./store.ts";
import type { UsabilityStore } from "./usability-store.ts";

export interface UsabilityDeps extends ChangeNotifierDeps {
  readonly db: Db;
  readonly store: BlocklistStore;
  readonly usabilityStore: UsabilityStore;
  readonly health: Pick<DnsblHealth, "of">;
  /** The lists in force. */
  readonly lists: readonly Blocklist[];
  readonly clock: Clock;
  readonly log: Log;
}

/** A change is told when it has lasted for so many tests. */
const TESTS_MIN = 2;
/** From so many lists on, all of them at once have one cause. */
const ALL_MIN = 3;
const RESOLVER_REMEDY =
  "Set POSTWARDEN_DNS_SERVERS to a recursive resolver of your own (unbound on this machine): most lists refuse public resolvers.";

interface Judged {
  readonly list: Blocklist;
  /** Null while the list can be used. */
  readonly trouble: ListHealth | null;
  /** When it was last tested. */
  readonly testedAtMs: number;
}

/** Counts the tests in which a list was other than what was last told. */
interface Differing {
  tests: number;
  testedAtMs: number;
}

/** What of a list is wrong: all kinds that can be tested are in trouble. Undefined while none has been tested. */
export const judgeList = (list: Blocklist, health: Pick<DnsblHealth, "of">): Judged | undefined => {
  const tested = list.kinds
    .filter((kind) => isProvable(list, kind))
    .map((kind) => health.of(list, kind))
    .filter(({ testedAtMs }) => testedAtMs !== null);
  if (tested.length === 0) return undefined;
  const isUsable = tested.some(({ state }) => state === "healthy");
  const testedAtMs = Math.max(...tested.map((one) => one.testedAtMs ?? 0));
  return { list, trouble: isUsable ? null : (tested[0] ?? null), testedAtMs };
};

/** Sentences for an operator about lists that cannot be used: one for all of them when they have one cause. */
export const findingsOf = (judged: readonly Judged[]): string[] => {
  const troubled = judged.flatMap(({ list, trouble }) => (trouble === null ? [] : [{ list, trouble }]));
  const [first] = troubled;
  if (first !== undefined && isAll(judged))
    return [
      `None of ${troubled.length} blocklists can be used through this resolver: ${first.list.name}: ${first.trouble.reason ?? first.trouble.state} ${RESOLVER_REMEDY}`,
    ];
  return troubled.map(({ list, trouble }) =>
    [`${list.name} cannot be used: ${trouble.reason ?? trouble.state}`, trouble.remedy].filter(Boolean).join(" "),
  );
};

const isAll = (judged: readonly Judged[]): boolean =>
  judged.length >= ALL_MIN && judged.every(({ trouble }) => trouble !== null);

/** Tells operators (log, findings) and accounts (events, mail) which lists cannot be used, and when they can be used again. */
export const createUsability = (deps: UsabilityDeps) => {
  const { db, store, usabilityStore, health, lists, clock, log, hasMail, findDefaults } = deps;
  const logged = new Set<string>();
  const differing = new Map<string, Differing>();

  const judgeAll = (): readonly Judged[] => lists.flatMap((list) => judgeList(list, health) ?? []);

  const logChanges = (judged: readonly Judged[]): void => {
    const changed = judged.filter(({ list, trouble }) => (trouble !== null) !== logged.has(list.id));
    for (const { list, trouble } of changed) {
      if (trouble === null) logged.delete(list.id);
      else logged.add(list.id);
    }
    if (isAll(judged) && changed.length > 0) {
      log.warn("no blocklist can be used", { finding: findingsOf(judged)[0] });
      return;
    }
    for (const { list, trouble } of changed) {
      if (trouble === null) log.info("a blocklist can be used again", { list: list.id });
      else {
        const { state, reason, remedy } = trouble;
        log.warn("a blocklist cannot be used", { list: list.id, state, reason, remedy });
      }
    }
  };

  /** Whether a list has been other than what was last told for long enough. */
  const hasLasted = ({ list, trouble, testedAtMs }: Judged, told: ReadonlySet<string>): boolean => {
    if ((trouble !== null) === told.has(list.id)) {
      differing.delete(list.id);
      return false;
    }
    const known = differing.get(list.id) ?? { tests: 0, testedAtMs: 0 };
    if (testedAtMs > known.testedAtMs) differing.set(list.id, { tests: known.tests + 1, testedAtMs });
    return (differing.get(list.id)?.tests ?? 0) >= TESTS_MIN;
  };

  const tell = (tx: Tx, changes: readonly Judged[], isOne: boolean): void => {
    const watched = usabilityStore.watchedKinds();
    const atMs = clock.nowMs();
    for (const accountId of new Set(watched.map((one) => one.accountId))) {
      const kinds = watched.filter((one) => one.accountId === accountId).map(({ kind }) => kind);
      const own = changes.filter(({ list }) => list.kinds.some((kind) => kinds.includes(kind)));
      for (const change of isOne ? own.slice(0, 1) : own) {
        const facts = factsOf(change, { isOne, count: own.length, atMs });
        const { trouble, list } = change;
        store.insertEvent(tx, {
          ...{ accountId, mode: "live", url: null, createdAtMs: atMs },
          type: trouble === null ? "blacklist.list_usable" : "blacklist.list_unusable",
          subject: `list:${isOne ? "all" : list.id}`,
          data: facts,
        });
        const recipients = hasMail ? findDefaults({ accountId, mode: "live" }).recipients : [];
        for (const alert of noticesOf(facts, recipients, atMs)) store.insertAlert(tx, alert);
      }
    }
    for (const { list, trouble } of changes) {
      if (trouble === null) usabilityStore.removeUnusable(tx, list.id);
      else usabilityStore.keepUnusable(tx, list.id, atMs);
      differing.delete(list.id);
    }
  };

  return {
    findings: (): string[] => findingsOf(judgeAll()),
    /** Looks at what the tests found, without asking anybody; a change that has lasted is told once. */
    async observe(): Promise<void> {
      const judged = judgeAll();
      logChanges(judged);
      const told = new Set(usabilityStore.unusableLists());
      const lasting = judged.filter((one) => hasLasted(one, told));
      if (lasting.length === 0) return;
      const isUp = judged.every(({ trouble }) => trouble === null) && told.size >= judged.length;
      const isOne = judged.length >= ALL_MIN && (isAll(judged) || isUp);
      // All at once have one cause: whoever is told of it need not be told of each.
      const changes = isOne ? judged.filter(({ list, trouble }) => (trouble !== null) !== told.has(list.id)) : lasting;
      await db.commit((tx) => tell(tx, changes, isOne));
    },
  };
};

export type Usability = ReturnType<typeof createUsability>;

const factsOf = (
  { list, trouble }: Judged,
  { isOne, count, atMs }: { readonly isOne: boolean; readonly count: number; readonly atMs: number },
) => ({
  list: isOne ? null : list.id,
  list_name: isOne ? `All ${count} blocklists` : list.name,
  kinds: list.kinds,
  state: trouble?.state ?? "healthy",
  reason: trouble?.reason ?? null,
  remedy: isOne && trouble !== null ? RESOLVER_REMEDY : (trouble?.remedy ?? null),
  mode: "live" as const,
  checked_at: isoTime(atMs),
});
export type UsabilityFacts = ReturnType<typeof factsOf>;
