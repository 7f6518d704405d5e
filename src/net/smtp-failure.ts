import type { ConnectFailure } from "./connector.ts";
import type { LineProblem } from "./line-socket.ts";
import type { SmtpTranscriptLine } from "./smtp-transcript.ts";
import type { SmtpReply } from "./smtp-reply.ts";

/** The command that was waiting for its answer. `rset` exists on warm sessions only: ask again on a fresh one. */
export type SmtpStage = "connect" | "banner" | "ehlo" | "starttls" | "rset" | "mail" | "rcpt";

/** The connector's words, with its `timeout` told apart from a silent server's. */
export type SmtpConnectFailureKind = Exclude<ConnectFailure, "timeout"> | "connect_timeout";

/**
 * What went wrong. `reply`: the server answered 4xx or 5xx (see `reply`); `closed`: it hung up; `timeout`: a reply was
 * not whole in time; `deadline`: the session's own time ran out; `garbage`: it does not speak SMTP (see `detail`);
 * `tls_failed`: it demanded TLS and could not do it; `smtputf8_not_offered`: the question was not sent.
 */
export type SmtpFailureKind =
  | SmtpConnectFailureKind
  | "closed"
  | "timeout"
  | "deadline"
  | "reply"
  | "garbage"
  | "tls_failed"
  | "smtputf8_not_offered";

/** Why a session, or a question in it, came to nothing. */
export interface SmtpFailure {
  readonly stage: SmtpStage;
  readonly kind: SmtpFailureKind;
  /** The refusal (`reply`), the reply with an impossible code (`garbage`), the 421 before the end (`closed`). */
  readonly reply: SmtpReply | null;
  /** For `garbage`: what exactly was wrong, for the evidence. Else `null`. */
  readonly detail: LineProblem | "unexpected_code" | null;
  /** False when the server never sent a byte. */
  readonly receivedAnything: boolean;
  /** What was said until then, as in `SmtpSession.transcript`. */
  readonly transcript: readonly SmtpTranscriptLine[];
}

/** 2xx: the server did as it was asked (RFC 5321 §4.2.1). */
export const isAccepted = (reply: SmtpReply): boolean => reply.code >= 200 && reply.code < 300;

/** 4xx or 5xx: the server understood and refused. */
export const isRefused = (reply: SmtpReply): boolean => reply.code >= 400 && reply.code < 600;

/** What a problem of the line means for the dialogue. */
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
 * True when a refusal asks for STARTTLS: 530 (RFC 3207 §4, unless it asks for authentication), x.7.10 (RFC 5248's
 * registry: encryption needed), or another refusal that says so in words.
 */
export const demandsTls = (reply: SmtpReply): boolean => {
  if (!isRefused(reply)) return false;
  if (reply.enhanced !== null && /^[45]\.7\.10$/.test(reply.enhanced)) return true;
  if (reply.code === 530 && !/auth/i.test(reply.text)) return true;
  return TLS_DEMAND.test(reply.text);
};

const TLS_DEMAND =
  /\b(?:must|need(?:s|ed)?|requires?|first|please)\b.{0,60}\bSTARTTLS\b|\bSTARTTLS\b.{0,60}\b(?:first|required|needed|mandatory)\b|\b(?:TLS|encryption|encrypted (?:session|connection)|secure connection)\b.{0,20}\b(?:is )?(?:required|needed|mandatory)\b|\b(?:requires?|must use)\b.{0,20}\b(?:TLS|encryption|encrypted)\b/i;
