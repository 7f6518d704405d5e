import type { Clock } from "../base/clock.ts";

/** This many hosts in a row that never answered a connect, and not one that did: then it is us. */
const SILENT_HOSTS_SUSPICIOUS = 10;
/** Silence longer ago than this says nothing about now. */
const MEMORY_MS = 60 * 60 * 1000;

/**
 * Notices that outgoing SMTP is closed on our own side (most clouds block port 25), which would otherwise look like
 * thousands of unreachable mail hosts.
 */
export const createEgressWatch = (clock: Clock) => {
  const silentHosts = new Map<string, number>();

  return {
    /** A connection to a mail host came about, or was refused by it: packets do get out. */
    noteAnswered: (): void => silentHosts.clear(),
    /** A mail host's address never answered the connect. */
    noteSilence(address: string): void {
      if (silentHosts.size < SILENT_HOSTS_SUSPICIOUS * 2) silentHosts.set(address, clock.nowMs());
    },
    /** A sentence when outgoing SMTP seems to be closed, else null. */
    finding(): string | null {
      const since = clock.nowMs() - MEMORY_MS;
      for (const [address, atMs] of silentHosts) if (atMs < since) silentHosts.delete(address);
      if (silentHosts.size < SILENT_HOSTS_SUSPICIOUS) return null;
      return `The last ${silentHosts.size} mail hosts did not answer the connect: outgoing SMTP seems to be blocked on this side.`;
    },
  };
};

export type EgressWatch = ReturnType<typeof createEgressWatch>;
