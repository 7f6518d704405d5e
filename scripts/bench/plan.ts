import { BUCKETS, AddressQueue, type Taken } from "../../src/bulk/run/address-queue.ts";
import { type Mark, median } from "./marks.ts";
import type { Stage } from "./stage.ts";

const ADDRESSES = 40_000;
const DOMAINS = 8_000;
/** As the service has it with 500 connections: addresses under way, and those of one provider. */
const WINDOW = 2_000;
const PER_GROUP_MAX = 500;
/** Addresses that end between two looks at the plan. */
const ENDED_AT_ONCE = 16;
const ROUNDS = 3;

/** The provider of a bucket. Of the largest lists most domains are at a few providers, the others have hosts of their own. */
type Providers = (bucket: number) => string;
const ownProviders: Providers = (bucket) => `own${bucket}`;
const oneProvider: Providers = (bucket) => (bucket % 10 < 9 ? "one" : `own${bucket}`);
const fourProviders: Providers = (bucket) => (bucket % 5 < 3 ? `large${bucket % 4}` : `own${bucket}`);

interface Run {
  readonly perSecond: number;
  readonly worstMs: number;
}

const workOff = (providerOf: Providers): Run => {
  const plan = new AddressQueue(PER_GROUP_MAX);
  for (let position = 0; position < ADDRESSES; position++) plan.add(position, (position % DOMAINS) % BUCKETS);
  const underWay: Taken[] = [];
  let worstMs = 0;
  const timed = <T>(step: () => T): T => {
    const startedMs = performance.now();
    const value = step();
    worstMs = Math.max(worstMs, performance.now() - startedMs);
    return value;
  };
  const startedMs = performance.now();
  for (let done = 0; done < ADDRESSES;) {
    while (underWay.length < WINDOW) {
      const taken = timed(() => plan.take(0));
      if (taken === null) break;
      underWay.push(taken);
    }
    for (let ended = 0; ended < ENDED_AT_ONCE && underWay.length > 0; ended++, done++) {
      // Not in the order in which they began: a step that shares no factor with the window.
      const [taken] = underWay.splice((done * 7_919) % underWay.length, 1);
      if (taken !== undefined) timed(() => plan.release(taken, providerOf(taken.bucket)));
    }
  }
  return { perSecond: Math.round((ADDRESSES / (performance.now() - startedMs)) * 1000), worstMs };
};

/** What a list's plan costs: by how much it is slower when most domains share their providers, and its longest step. */
export const measurePlan = async (_stage: Stage): Promise<Mark[]> => {
  const group = "plan";
  const figures = (providerOf: Providers) => {
    const runs = Array.from({ length: ROUNDS }, () => workOff(providerOf));
    return { perSecond: median(runs.map((run) => run.perSecond)), worstMs: median(runs.map((run) => run.worstMs)) };
  };
  workOff(ownProviders);
  const own = figures(ownProviders);
  const shared = { "one provider (90 %)": figures(oneProvider), "four providers (60 %)": figures(fourProviders) };
  const note = `${ADDRESSES} addresses of ${DOMAINS} domains, a window of ${WINDOW}; median of ${ROUNDS}`;
  return [
    { group, what: "addresses, own providers", value: own.perSecond, unit: "/s", note },
    ...Object.entries(shared).flatMap(([what, { perSecond, worstMs }]): Mark[] => [
      { group, what: `addresses, ${what}`, value: perSecond, unit: "/s" },
      { group, what: "slower than own providers by", value: own.perSecond / perSecond, unit: "", limit: { most: 5 } },
      { group, what: "longest step", value: worstMs, unit: "ms", limit: { most: 50 } },
    ]),
  ];
};
