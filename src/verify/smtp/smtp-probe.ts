import type { Clock } from "../../foundation/base/clock.ts";
import type { Result } from "../../foundation/base/errors.ts";
import { isRefused, type SmtpFailure } from "../../foundation/net/smtp-failure.ts";
import type { SmtpTranscriptLine } from "../../foundation/net/line-socket.ts";
import type { SmtpProbe, SmtpProbeResult, SmtpSession } from "../../foundation/net/smtp-session.ts";

/** What a mail host replied to one probe, or why it did not. */
export interface ProbeResult extends SmtpProbeResult {
  readonly connection: "new" | "reused" | "none";
  readonly tls: boolean;
  /** The opening of the session and the lines of this probe only. */
  readonly transcript: readonly SmtpTranscriptLine[];
  /** Wall time at which the host was dialled, or probed on an open connection. */
  readonly startedAtMs: number;
  /** From then until the last reply; waiting in queues is not included. */
  readonly tookMs: number;
  /** The host was not dialled: it has been on cooldown since this wall time, because it kept timing out. */
  readonly cooldownSinceMs?: number;
}

/** An open session, with what the pool must know about it. */
export interface Connection {
  readonly session: SmtpSession;
  /** Monotonic. */
  readonly openedMs: number;
  /** Recipients probed so far. */
  recipients: number;
}

export interface RunOptions {
  /** An idle connection to the host; null where there is none. */
  readonly idle: Connection | null;
  readonly open: () => Promise<Result<SmtpSession, SmtpFailure>>;
  /** Called when the probe has ended, however it did. */
  readonly ended: () => void;
}

interface ProbeRun {
  readonly result: ProbeResult;
  /** The connection that was used, whether reusable or not; null when none was opened. The caller closes it. */
  readonly connection: Connection | null;
}

/**
 * Runs one probe on an idle connection or a new one. A probe that an idle connection leaves open, because it ended or has
 * served enough, is repeated once on a new one. Rejects only for a bug, with nothing left open.
 */
export const runProbe = async (clock: Clock, probe: SmtpProbe, options: RunOptions): Promise<ProbeRun> => {
  const { idle, open, ended } = options;
  const timer: ProbeTimer = { clock, startedAtMs: clock.nowMs(), startedMs: clock.monotonicMs() };
  try {
    if (idle !== null) {
      const run = await runOn(idle, probe, { how: "reused", timer });
      if (!isStale(run.result)) return run;
      idle.session.close();
    }
    const session = await open();
    if (!session.ok) return { result: { ...notConnected(probe, session.error), ...timingOf(timer) }, connection: null };
    const connection = { session: session.value, openedMs: clock.monotonicMs(), recipients: 0 };
    return await runOn(connection, probe, { how: "new", timer });
  } finally {
    ended();
  }
};

/** When a probe began. */
interface ProbeTimer {
  readonly clock: Clock;
  readonly startedAtMs: number;
  readonly startedMs: number;
}

const timingOf = ({ clock, startedAtMs, startedMs }: ProbeTimer) => ({
  startedAtMs,
  tookMs: clock.monotonicMs() - startedMs,
});

const runOn = async (
  connection: Connection,
  probe: SmtpProbe,
  { how, timer }: { readonly how: "new" | "reused"; readonly timer: ProbeTimer },
): Promise<ProbeRun> => {
  const replies = await probeOrClose(connection, probe);
  const { tls, transcript } = connection.session;
  return { result: { ...replies, connection: how, tls, transcript, ...timingOf(timer) }, connection };
};

const probeOrClose = async (connection: Connection, probe: SmtpProbe): Promise<SmtpProbeResult> => {
  connection.recipients += probe.recipients.length;
  try {
    return await connection.session.probe(probe);
  } catch (error) {
    connection.session.close();
    throw error;
  }
};

/**
 * A result of a reused connection that is about the connection only: it ended while it was idle, did not reply or ran out of time,
 * or the server that accepted this sender before now refuses it or replies 421, as servers do that limit what one connection may
 * send. None of that is about the recipient.
 */
const isStale = ({ mail, rcpts, failure }: SmtpProbeResult): boolean => {
  if (rcpts.some((reply) => reply !== null && reply.code !== 421)) return false;
  if (mail !== null && isRefused(mail)) return true;
  if (rcpts.some((reply) => reply !== null)) return true;
  if (failure === null) return false;
  if (mail === null) return failure.kind !== "smtputf8_not_offered";
  return failure.kind === "closed" || failure.kind === "deadline";
};

const notConnected = (probe: SmtpProbe, failure: SmtpFailure) => ({
  mail: null,
  rcpts: probe.recipients.map(() => null),
  failure,
  connection: "none" as const,
  tls: false,
  transcript: failure.transcript,
});

/** The result for a host on cooldown, which is not dialled. */
export const cooldownResult = (
  probe: SmtpProbe,
  { failure, sinceMs }: { readonly failure: SmtpFailure; readonly sinceMs: number },
  nowMs: number,
): ProbeResult => ({ ...notConnected(probe, failure), startedAtMs: nowMs, tookMs: 0, cooldownSinceMs: sinceMs });

/** The host did not accept the connection, or accepted it and sent nothing. */
export const isUnresponsive = (failure: SmtpFailure | null): failure is SmtpFailure =>
  failure !== null && (failure.kind === "connect_timeout" || (failure.kind === "timeout" && !failure.receivedAnything));

/** A 421 instead of the banner. While other connections of ours to the host are open, it means that they are too many. */
export const isConnectionLimit = (failure: SmtpFailure | null): boolean =>
  failure?.stage === "banner" && failure.reply?.code === 421;
