import type { Clock } from "../base/clock.ts";
import type { SmtpFailure } from "../net/smtp-failure.ts";

/** What happened to a dialogue, as far as dialling again is concerned. */
export type SessionOutcome =
  /** The host took the question, whatever it said. */
  | { readonly kind: "answered" }
  /** It said that we come too often. */
  | { readonly kind: "rate_limited" }
  /** It did not answer the connect, or never sent a banner. */
  | { readonly kind: "silent"; readonly failure: SmtpFailure };

export type Admission =
  | { readonly kind: "go"; readonly connectionsMax: number }
  /** Dial again after so long. */
  | { readonly kind: "wait"; readonly waitMs: number }
  /** Do not dial: it was silent time and again; this is what it would say. */
  | { readonly kind: "resting"; readonly failure: SmtpFailure; readonly sinceMs: number };

interface Memory {
  silences: number;
  rest: {
    readonly failure: SmtpFailure;
    readonly sinceMs: number;
    readonly untilMs: number;
    readonly lengthMs: number;
  } | null;
  /** Rate limits in a row, and when the host may be dialled again because of them. */
  limits: number;
  dialAtMs: number;
  connectionsMax: number;
  touchedMs: number;
}

/** One silence may be the network's; so many in a row are the host's. */
const SILENCES_BEFORE_REST = 3;
const REST_MS = 60_000;
const REST_MS_MAX = 10 * 60_000;
/** After a rate limit the host is dialled no sooner than this, doubling while it goes on. */
const LIMIT_WAIT_MS = 500;
const LIMIT_WAIT_MS_MAX = 5_000;
/** Hosts remembered; those not dialled for long are forgotten first. */
const HOSTS_MAX = 50_000;
const FORGET_AFTER_MS = 60 * 60_000;

/**
 * When a host may be dialled: what it did to us lately. A host that limits us gets fewer connections and pauses; one
 * that is silent time and again is not dialled for a while, so that thousands of questions do not wait for nothing.
 */
export const createPacing = (clock: Clock, connectionsPerHostMax: number) => {
  const hosts = new Map<string, Memory>();

  const memoryOf = (host: string): Memory => {
    const known = hosts.get(host);
    if (known !== undefined) return known;
    if (hosts.size >= HOSTS_MAX) forget();
    const fresh = {
      silences: 0,
      rest: null,
      limits: 0,
      dialAtMs: 0,
      connectionsMax: connectionsPerHostMax,
      touchedMs: 0,
    };
    hosts.set(host, fresh);
    return fresh;
  };

  const forget = (): void => {
    const before = clock.monotonicMs() - FORGET_AFTER_MS;
    for (const [host, memory] of hosts) if (memory.touchedMs < before) hosts.delete(host);
    for (const host of hosts.keys()) {
      if (hosts.size < HOSTS_MAX) return;
      hosts.delete(host);
    }
  };

  const noteAnswer = (memory: Memory): void => {
    memory.silences = 0;
    memory.rest = null;
    memory.limits = 0;
    memory.connectionsMax = Math.min(connectionsPerHostMax, memory.connectionsMax + 1);
  };

  const noteLimit = (memory: Memory): void => {
    const waitMs = Math.min(LIMIT_WAIT_MS * 2 ** memory.limits, LIMIT_WAIT_MS_MAX);
    memory.limits++;
    memory.dialAtMs = clock.monotonicMs() + waitMs;
    memory.connectionsMax = Math.max(1, Math.floor(memory.connectionsMax / 2));
  };

  const noteSilence = (memory: Memory, failure: SmtpFailure): void => {
    memory.silences++;
    if (memory.silences < SILENCES_BEFORE_REST) return;
    const lengthMs = memory.rest === null ? REST_MS : Math.min(memory.rest.lengthMs * 2, REST_MS_MAX);
    memory.rest = { failure, sinceMs: clock.nowMs(), untilMs: clock.monotonicMs() + lengthMs, lengthMs };
  };

  return {
    /** Whether a host may be dialled now, and by how many connections at a time. */
    admit(host: string): Admission {
      const memory = hosts.get(host);
      if (memory === undefined) return { kind: "go", connectionsMax: connectionsPerHostMax };
      const nowMs = clock.monotonicMs();
      const { rest, dialAtMs, connectionsMax } = memory;
      if (rest !== null && rest.untilMs > nowMs)
        return { kind: "resting", failure: rest.failure, sinceMs: rest.sinceMs };
      return dialAtMs > nowMs ? { kind: "wait", waitMs: dialAtMs - nowMs } : { kind: "go", connectionsMax };
    },

    note(host: string, end: SessionOutcome): void {
      if (end.kind === "answered" && !hosts.has(host)) return;
      const memory = memoryOf(host);
      memory.touchedMs = clock.monotonicMs();
      if (end.kind === "answered") noteAnswer(memory);
      else if (end.kind === "rate_limited") noteLimit(memory);
      else noteSilence(memory, end.failure);
    },

    /** Lets every host be dialled again that was silent: it was not the hosts' fault. */
    endCooldowns(): void {
      for (const memory of hosts.values()) {
        memory.silences = 0;
        memory.rest = null;
      }
    },

    size: (): number => hosts.size,
  };
};

export type Pacing = ReturnType<typeof createPacing>;
