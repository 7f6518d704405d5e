import type { Clock } from "../base/clock.ts";
import type { Result } from "../base/errors.ts";
import type { SmtpTranscriptLine } from "../net/smtp-transcript.ts";
import { isRefused, type SmtpFailure } from "../net/smtp-failure.ts";
import type { SmtpProbeResult, SmtpProbe, SmtpSession } from "../net/smtp-session.ts";

/** What a mail host said to one question, or why it said nothing. */
export interface ProbeResult extends SmtpProbeResult {
  readonly connection: "new" | "reused" | "none";
  readonly tls: boolean;
  /** The session's opening and this question's lines, nobody else's. */
  readonly transcript: readonly SmtpTranscriptLine[];
  /** Wall time at which the host was dialled, or asked over a connection that stood. */
  readonly startedAtMs: number;
  /** From then until the answer was complete; the wait for a turn is not in it. */
  readonly tookMs: number;
  /** The host was not asked: it has been silent since this wall time, and rests. */
  readonly cooldownSinceMs?: number;
}

/** A session with what the pool must know about it. */
export interface Connection {
  readonly session: SmtpSession;
  /** Monotonic. */
  readonly openedMs: number;
  recipients: number;
}

/** Opens a session with the host that is asked. */
export type OpenSession = () => Promise<Result<SmtpSession, SmtpFailure>>;

interface Held {
  readonly answer: ProbeResult;
  /** The connection that answered, usable or not; null when none came about. The caller closes it. */
  readonly connection: Connection | null;
}

/**
 * Puts one question over a standing connection or a new one. What a standing connection leaves unsaid because it ended,
 * or because it had served enough, is asked again once on a new one. Rejects only for a bug, with nothing left open.
 */
export const runProbe = async (
  clock: Clock,
  question: SmtpProbe,
  { standing, open }: { readonly standing: Connection | null; readonly open: OpenSession },
): Promise<Held> => {
  const startedAtMs = clock.nowMs();
  const startedMs = clock.monotonicMs();
  const put = async (connection: Connection, how: "new" | "reused"): Promise<Held> => {
    const said = await askOrClose(connection, question);
    const { tls, transcript } = connection.session;
    const tookMs = clock.monotonicMs() - startedMs;
    return { answer: { ...said, connection: how, tls, transcript, startedAtMs, tookMs }, connection };
  };

  if (standing !== null) {
    const held = await put(standing, "reused");
    if (!isStale(held.answer)) return held;
    standing.session.close();
  }
  const session = await open();
  if (!session.ok) {
    const tookMs = clock.monotonicMs() - startedMs;
    return { answer: { ...connectFailed(question, session.error), startedAtMs, tookMs }, connection: null };
  }
  return put({ session: session.value, openedMs: clock.monotonicMs(), recipients: 0 }, "new");
};

const askOrClose = async (connection: Connection, question: SmtpProbe): Promise<SmtpProbeResult> => {
  connection.recipients += question.recipients.length;
  try {
    return await connection.session.probe(question);
  } catch (error) {
    connection.session.close();
    throw error;
  }
};

/**
 * The answer of a reused connection that is about the connection only: it ended while it rested or ran out of its time,
 * or the server that took this sender before now refuses him or says 421, as servers do that count what one connection
 * may ask. Nothing of that is about the recipient.
 */
const isStale = ({ mail, rcpts, failure }: SmtpProbeResult): boolean => {
  if (rcpts.some((reply) => reply !== null && reply.code !== 421)) return false;
  if (mail !== null && isRefused(mail)) return true;
  if (rcpts.some((reply) => reply !== null)) return true;
  return failure !== null && (failure.kind === "closed" || failure.kind === "deadline" || failure.stage === "rset");
};

/** The answer of a host that could not be opened a session with. */
export const connectFailed = (question: SmtpProbe, failure: SmtpFailure) => ({
  mail: null,
  rcpts: question.recipients.map(() => null),
  failure,
  connection: "none" as const,
  tls: false,
  transcript: failure.transcript,
});

/** The answer of a host that was not dialled, because it was silent time and again. */
export const cooldownResult = (
  question: SmtpProbe,
  { failure, sinceMs }: { readonly failure: SmtpFailure; readonly sinceMs: number },
  nowMs: number,
): ProbeResult => ({ ...connectFailed(question, failure), startedAtMs: nowMs, tookMs: 0, cooldownSinceMs: sinceMs });

/** The host did not take the connect, or took it and never said a word. */
export const isUnresponsive = (failure: SmtpFailure | null): failure is SmtpFailure =>
  failure !== null && (failure.kind === "connect_timeout" || (failure.kind === "timeout" && !failure.receivedAnything));

/** A 421 at the door: while other connections of ours to the same host are open, we are the crowd. */
export const isConnectionLimit = (failure: SmtpFailure | null): boolean =>
  failure?.stage === "banner" && failure.reply?.code === 421;
