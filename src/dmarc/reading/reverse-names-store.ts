import type { Db, Tx } from "../../db/open.ts";

/** What the DNS said of an address, and when it is asked again. */
export interface ReverseName {
  readonly ip: string;
  /** Lower-case A-labels; null when there is none. */
  readonly name: string | null;
  /** Whether the name leads back to the address. */
  readonly isConfirmed: boolean;
  readonly askedAtMs: number;
  readonly dueAtMs: number;
}

/** The reverse names of addresses that reports told of. */
export const createReverseNameStore = ({ sqlite }: Pick<Db, "sqlite">) => {
  const due = sqlite.prepare<{ ip: string }, [number, number]>(
    "SELECT ip FROM dmarc_reverse_names WHERE due_at_ms <= ? ORDER BY due_at_ms LIMIT ?",
  );
  const last = sqlite.prepare<{ ip: string }, [number, number]>(
    "SELECT ip FROM dmarc_reverse_names WHERE due_at_ms <= ? ORDER BY due_at_ms DESC, rowid DESC LIMIT ?",
  );
  const save = sqlite.prepare<unknown, [string | null, number, number, number, string]>(
    "UPDATE dmarc_reverse_names SET name = ?, is_confirmed = ?, asked_at_ms = ?, due_at_ms = ? WHERE ip = ?",
  );
  const postpone = sqlite.prepare<unknown, [number, string]>(
    "UPDATE dmarc_reverse_names SET due_at_ms = ? WHERE ip = ?",
  );

  return {
    /**
     * Addresses whose time has come: half of them those whose time came last, so that the few of one domain do not wait behind the
     * many of another; the others are the longest overdue, so that none waits for ever.
     */
    due(nowMs: number, limit: number): string[] {
      const fresh = last.all(nowMs, Math.floor(limit / 2)).map(({ ip }) => ip);
      const oldest = due.all(nowMs, limit).map(({ ip }) => ip);
      return [...new Set([...fresh, ...oldest])].slice(0, limit);
    },
    save: (_tx: Tx, { ip, name, isConfirmed, askedAtMs, dueAtMs }: ReverseName): void =>
      void save.run(name, isConfirmed ? 1 : 0, askedAtMs, dueAtMs, ip),
    /** Asks at another time; what is known stays. */
    postpone: (_tx: Tx, ip: string, dueAtMs: number): void => void postpone.run(dueAtMs, ip),
  };
};

export type ReverseNameStore = ReturnType<typeof createReverseNameStore>;
