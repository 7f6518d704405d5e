import type { Mark } from "../bench/marks.ts";
import type { Settings } from "../bench/stage.ts";
import type { ServerAddresses } from "./children.ts";
import type { Keys, Service } from "./service.ts";
import type { Connections } from "./connections.ts";

/** A figure of one attack, with or without a limit. */
export type Finding = Omit<Mark, "group">;

/** What an attack works with. */
export interface AttackContext {
  readonly service: Service;
  readonly keys: Keys;
  readonly dataDir: string;
  /** What the server of the attack has counted. */
  readonly countOfServer: () => number;
  /** Closed when the attack is over. */
  readonly connections: Connections;
  /** Aborted when the attack's time is up, when the service has died, or when the siege is interrupted. */
  readonly signal: AbortSignal;
}

/** Before the service starts: what has to stand in its database. */
export interface SeedContext {
  readonly binary: string;
  readonly dataDir: string;
  readonly keys: Keys;
  readonly servers: ServerAddresses;
  readonly children: Set<Bun.Subprocess>;
}

/** A server of one attack, which the settings of the service name. */
export interface AttackServer {
  readonly settings: Settings;
  /** Connections of the service, or mails from it. */
  readonly count: () => number;
  readonly close: () => void;
}

export interface Attack {
  readonly name: string;
  readonly about: string;
  /** Whether it belongs to `--quick`. */
  readonly isQuick: boolean;
  /** The attack is given up after this time. */
  readonly seconds: number;
  /** Settings of the service for this attack. */
  readonly settings?: Settings;
  /** Starts the server of the attack before the service. */
  readonly open?: () => AttackServer;
  readonly seed?: (context: SeedContext) => Promise<void>;
  /** Prepares the attack on the running service, before idle times are measured. Answers the attack itself. */
  readonly prepare: (context: AttackContext) => Promise<() => Promise<readonly Finding[]>>;
}

/** Waits, but not beyond the end of the attack. */
export const pause = async ({ signal }: AttackContext, ms: number): Promise<void> => {
  if (signal.aborted || ms <= 0) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  const end = (): void => resolve();
  signal.addEventListener("abort", end);
  await promise;
  clearTimeout(timer);
  signal.removeEventListener("abort", end);
};

/** Counts words, for a note such as `18 × 503, 2 × 202`. */
export const tallyOf = (words: readonly (string | number)[]): string =>
  [...Map.groupBy(words, (word) => word)].map(([word, group]) => `${group.length} × ${word}`).join(", ") || "none";

/** Repeats `task`, `atOnce` at a time: up to a number of times, up to a time, and at most until the attack ends. */
export const flood = async (
  context: AttackContext,
  {
    atOnce,
    times = Infinity,
    forMs = Infinity,
  }: { readonly atOnce: number; readonly times?: number; readonly forMs?: number },
  task: (n: number) => Promise<void>,
): Promise<void> => {
  const endsAtMs = performance.now() + forMs;
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < times && performance.now() < endsAtMs && !context.signal.aborted) await task(next++);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, times) }, worker));
};
