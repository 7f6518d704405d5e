import { isIP } from "node:net";
import type { Clock } from "../base/clock.ts";
import type { Connector } from "../net/connector.ts";

/** One way out of this machine: a local address, or a SOCKS5 proxy. */
export interface Egress {
  /** As the evidence names it: `direct`, the local address, or `socks5://host:port`. Never a password. */
  readonly name: string;
  readonly connector: Connector;
  /** Bound before connecting; null leaves the choice to the system (or to the proxy). */
  readonly localAddress: string | null;
}

/** Where a host belongs: an exit that is blocked at one host of a provider is blocked at all of them. */
export interface EgressTarget {
  readonly address: string;
  readonly provider: string;
}

/** A provider that blocked an exit is left alone by it for this long, doubling each time up to the second figure. */
const REST_MS = 15 * 60 * 1000;
const REST_MS_MAX = 4 * 60 * 60 * 1000;
/** Pairs of exit and provider remembered; beyond it the oldest are forgotten. */
const RESTS_MAX = 10_000;
/** An exit that is broken itself (no such address, no such proxy) is left alone everywhere for this long. */
const BROKEN_MS = 60_000;

/** Until when, by the monotonic clock. */
interface Rest {
  readonly untilMs: number;
  readonly lengthMs: number;
}

/** Which egress a session uses. Egresses take turns; one that a provider blocked is on cooldown there, a broken one everywhere. */
export const createEgressPool = (egresses: readonly [Egress, ...Egress[]], clock: Clock) => {
  const rests = new Map<string, Rest>();
  const brokenUntilMs = new Map<string, number>();
  let turn = 0;

  const key = (exit: string, provider: string): string => `${exit} ${provider}`;
  const restsUntilMs = ({ name }: Egress, provider: string): number =>
    Math.max(rests.get(key(name, provider))?.untilMs ?? 0, brokenUntilMs.get(name) ?? 0);

  /** A local address of the other family could never connect. */
  const fits = ({ localAddress }: Egress, address: string): boolean =>
    localAddress === null || isIP(localAddress) === isIP(address);

  return {
    /**
     * The exit for a dialogue: `preferred` (a retry must leave as the try before did, or greylisting begins anew)
     * unless it rests, else the next in turn that does not rest and is not in `tried`; null when there is none.
     */
    choose(target: EgressTarget, preferred: string | null, tried: ReadonlySet<string> = new Set()): Egress | null {
      const nowMs = clock.monotonicMs();
      const usable = egresses.filter(
        (exit) => fits(exit, target.address) && !tried.has(exit.name) && restsUntilMs(exit, target.provider) <= nowMs,
      );
      return usable.find(({ name }) => name === preferred) ?? usable[turn++ % Math.max(1, usable.length)] ?? null;
    },

    /** The exit whose rest ends first, of those that can reach the address at all: better a blocked one than none. */
    chooseAny(target: EgressTarget): Egress | null {
      const fitting = egresses.filter((exit) => fits(exit, target.address));
      return fitting.toSorted((a, b) => restsUntilMs(a, target.provider) - restsUntilMs(b, target.provider))[0] ?? null;
    },

    /** The exit of that name; the first one when it was taken out of the settings since. */
    get: (name: string): Egress => egresses.find((exit) => exit.name === name) ?? egresses[0],

    /** The provider blocks this exit, and not others: it rests there. */
    rest(exit: string, provider: string): void {
      const before = rests.get(key(exit, provider));
      const lengthMs = before === undefined ? REST_MS : Math.min(before.lengthMs * 2, REST_MS_MAX);
      rests.delete(key(exit, provider));
      rests.set(key(exit, provider), { untilMs: clock.monotonicMs() + lengthMs, lengthMs });
      const [oldest] = rests.keys();
      if (rests.size > RESTS_MAX && oldest !== undefined) rests.delete(oldest);
    },

    /** Nothing can leave by this exit at the moment, wherever to. */
    markBroken: (exit: string): void => void brokenUntilMs.set(exit, clock.monotonicMs() + BROKEN_MS),

    /** The provider took this exit's question: whatever was, is forgotten. */
    markWorking(exit: string, provider: string): void {
      rests.delete(key(exit, provider));
      brokenUntilMs.delete(exit);
    },

    count: egresses.length,
  };
};

export type EgressPool = ReturnType<typeof createEgressPool>;
