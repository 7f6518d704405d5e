import type { Clock } from "../base/clock.ts";
import type { SmtpFailure } from "../net/smtp-failure.ts";

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
    /** What came of dialling an address; null for an open session. Our own failures and a proxy's say nothing. */
    note(address: string, failure: SmtpFailure | null): void {
      if (failure?.kind === "connect_timeout") {
        if (silentHosts.size < SILENT_HOSTS_SUSPICIOUS * 2) silentHosts.set(address, clock.nowMs());
      } else if (failure === null || failure.heardAnything || failure.kind === "refused_or_unreachable") {
        silentHosts.clear();
      }
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
