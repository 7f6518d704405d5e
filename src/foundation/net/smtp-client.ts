import type { Clock } from "../base/clock.ts";
import { err, ok, type Result } from "../base/errors.ts";
import type { ConnectFailure, Connector } from "./connector.ts";
import type { SmtpConnectFailureKind, SmtpFailure } from "./smtp-failure.ts";
import { LineSocket, TranscriptRecorder } from "./line-socket.ts";
import { bannerOf, closeAfter, nextReply, sendEhlo, type SmtpLineContext } from "./smtp-handshake.ts";
import { createSession, type SmtpSession } from "./smtp-session.ts";

/** Where to connect, from which address and under which name, and the timeouts. */
export interface SmtpSessionOptions {
  readonly connector: Connector;
  readonly clock: Clock;
  /** An IP literal. */
  readonly address: string;
  readonly port: number;
  readonly localAddress?: string | null;
  /** The host name from the MX record, for TLS SNI. */
  readonly serverName: string;
  /** Our own name for EHLO, or an address literal (RFC 5321 §4.1.3). */
  readonly heloName: string;
  readonly connectTimeoutMs: number;
  /** For each reply as a whole, the banner and a TLS handshake included. */
  readonly replyTimeoutMs: number;
  /** For the whole session from the connect on, later probes and idle time included; then it is destroyed. */
  readonly sessionDeadlineMs?: number;
}

/**
 * Connects, waits for the whole banner and sends EHLO (HELO where EHLO is not implemented), RFC 5321 §3.1 f.
 *
 * Ends within the connect timeout and three reply timeouts, or at the session's deadline, whatever the server does.
 * After a failure nothing is left open, except that a refusing server has `QUIT_WAIT_MS` to accept QUIT.
 */
export const openSession = async (options: SmtpSessionOptions): Promise<Result<SmtpSession, SmtpFailure>> => {
  const { connector, clock, address, port, localAddress = null, sessionDeadlineMs } = options;
  const startedMs = clock.monotonicMs();
  const timeoutMs = Math.min(options.connectTimeoutMs, sessionDeadlineMs ?? options.connectTimeoutMs);
  const wire = await connector({ address, port, localAddress, timeoutMs });
  if (!wire.ok) return err(connectFailure(wire.error));

  const transcript = new TranscriptRecorder(clock, startedMs);
  const endsAtMs = sessionDeadlineMs === undefined ? null : startedMs + sessionDeadlineMs;
  const { heloName, serverName, replyTimeoutMs } = options;
  const line = new LineSocket({ wire: wire.value, clock, transcript, endsAtMs });
  const context: SmtpLineContext = { line, transcript, clock, heloName, serverName, replyTimeoutMs };

  const banner = bannerOf(context, await nextReply(context));
  const offered = banner.ok ? await sendEhlo(context) : banner;
  if (offered.ok) return ok(createSession(context, offered.value));
  closeAfter(context, offered.error);
  return offered;
};

const connectFailure = (failure: ConnectFailure): SmtpFailure => {
  const kind: SmtpConnectFailureKind = failure === "timeout" ? "connect_timeout" : failure;
  return { stage: "connect", kind, reply: null, detail: null, receivedAnything: false, transcript: [] };
};
