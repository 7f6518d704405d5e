import type { ConnectFailure } from "./connector.ts";
import type { LineProblem, SmtpTranscriptLine } from "./line-socket.ts";
import type { SmtpReply } from "./smtp-reply.ts";

/** The command whose reply was awaited. */
export type SmtpStage = "connect" | "banner" | "ehlo" | "starttls" | "mail" | "rcpt";

/** The failures of the connector; its `timeout` is distinguished from that of a reply. */
export type SmtpConnectFailureKind = Exclude<ConnectFailure, "timeout"> | "connect_timeout";

/**
 * What went wrong. `reply`: the server sent 4xx or 5xx (see `reply`); `closed`: it closed the connection; `timeout`: a reply was
 * not complete in time; `deadline`: the session's own deadline passed; `garbage`: invalid SMTP (see `detail`);
 * `tls_failed`: it demanded TLS and could not do it; `smtputf8_not_offered`: the probe was not sent.
 */
type SmtpFailureKind =
  | SmtpConnectFailureKind
  | "closed"
  | "timeout"
  | "deadline"
  | "reply"
  | "garbage"
  | "tls_failed"
  | "smtputf8_not_offered";

/** Why a session, or a probe in it, failed. */
export interface SmtpFailure {
  readonly stage: SmtpStage;
  readonly kind: SmtpFailureKind;
  /** The refusal (`reply`), the reply with an impossible code (`garbage`), the 421 before the end (`closed`). */
  readonly reply: SmtpReply | null;
  /** For `garbage`: what exactly was wrong, for the evidence. Else `null`. */
  readonly detail: LineProblem | "unexpected_code" | null;
  /** False when the server never sent a byte. */
  readonly receivedAnything: boolean;
  /** The transcript until then, as in `SmtpSession.transcript`. */
  readonly transcript: readonly SmtpTranscriptLine[];
}

/** 2xx: the command succeeded (RFC 5321 §4.2.1). */
export const isAccepted = (reply: SmtpReply): boolean => reply.code >= 200 && reply.code < 300;

/** 4xx or 5xx: the server refused the command. */
export const isRefused = (reply: SmtpReply): boolean => reply.code >= 400 && reply.code < 600;

/** The kind of failure that a problem of the connection is. */
export const failureKindOf = (problem: LineProblem | "tls_failed"): SmtpFailureKind => {
  switch (problem) {
    case "closed":
    case "timeout":
    case "deadline":
    case "tls_failed":
      return problem;
    default:
      return "garbage";
  }
};

/**
 * True when a refusal requires STARTTLS: 530 (RFC 3207 §4, unless it requires authentication), x.7.10 (RFC 5248's
 * registry: encryption needed), or another refusal whose text says so.
 */
export const demandsTls = (reply: SmtpReply): boolean => {
  if (!isRefused(reply)) return false;
  if (reply.enhanced !== null && /^[45]\.7\.10$/.test(reply.enhanced)) return true;
  if (reply.code === 530 && !/auth/i.test(reply.text)) return true;
  return TLS_DEMAND.test(reply.text);
};

const TLS_DEMAND =
  /\b(?:must|need(?:s|ed)?|requires?|first|please)\b.{0,60}\bSTARTTLS\b|\bSTARTTLS\b.{0,60}\b(?:first|required|needed|mandatory)\b|\b(?:TLS|encryption|encrypted (?:session|connection)|secure connection)\b.{0,20}\b(?:is )?(?:required|needed|mandatory)\b|\b(?:requires?|must use)\b.{0,20}\b(?:TLS|encryption|encrypted)\b/i;
