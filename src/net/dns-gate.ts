import type { Clock } from "../base/clock.ts";

/** Lets a bounded number of questions be under way; the others wait their turn. */
export interface DnsGate {
  /** True when the turn has come, and `leave` must follow; false when it cannot come in time. `deadlineMs` is monotonic. */
  enter(deadlineMs: number): Promise<boolean>;
  leave(): void;
}

export interface DnsGateLimits {
  readonly clock: Clock;
  readonly underWayMax: number;
  readonly waitingMax: number;
}

export const createDnsGate = ({ clock, underWayMax, waitingMax }: DnsGateLimits): DnsGate => {
  const waiting = new Set<(isIn: boolean) => void>();
  let underWay = 0;

  return {
    async enter(deadlineMs) {
      if (underWay < underWayMax) {
        underWay++;
        return true;
      }
      if (waiting.size >= waitingMax) return false;
      return new Promise<boolean>((resolve) => {
        const settle = (isIn: boolean): void => {
          waiting.delete(settle);
          cancel();
          resolve(isIn);
        };
        const cancel = clock.after(deadlineMs - clock.monotonicMs(), () => settle(false));
        waiting.add(settle);
      });
    },

    leave() {
      // The place passes on directly, so that nobody overtakes those who wait.
      const next = waiting.values().next().value;
      if (next) next(true);
      else underWay--;
    },
  };
};
