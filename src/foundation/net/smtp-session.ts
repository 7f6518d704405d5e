import { err, type Result } from "../base/errors.ts";
import { demandsTls, isAccepted, isRefused, type SmtpFailure, type SmtpStage } from "./smtp-failure.ts";
import type { LineProblem, SmtpTranscriptLine } from "./line-socket.ts";
import {
  type SmtpCapabilities,
  lineFailure,
  type SmtpLineContext,
  closeAfter,
  replyFailure,
  secure,
  envelopeCommands,
  type SmtpEnvelope,
} from "./smtp-handshake.ts";
import type { SmtpReply } from "./smtp-reply.ts";

/** One MAIL with its recipients. */
export interface SmtpProbe extends SmtpEnvelope {
  /**
   * Called with each recipient's reply; true skips the later recipients (their reply stays `null`).
   * Not called where the server offers PIPELINING: there all commands were sent before the first reply came.
   */
  readonly stopAfter?: (index: number, reply: SmtpReply) => boolean;
}

/**
 * The replies. `rcpts` has one entry for each recipient, `null` where no reply is known. A reply is kept even when the
 * session failed later, or when it demanded TLS and that failed (stage `starttls`). `failure` is also set when MAIL was
 * refused (stage `mail`, kind `reply`).
 */
export interface SmtpProbeResult {
  readonly mail: SmtpReply | null;
  readonly rcpts: readonly (SmtpReply | null)[];
  readonly failure: SmtpFailure | null;
}

/** An SMTP session past EHLO. Never sends DATA. */
export interface SmtpSession {
  readonly capabilities: SmtpCapabilities;
  /** The opening and the latest probe, bounded: read it before the next probe. */
  readonly transcript: readonly SmtpTranscriptLine[];
  readonly tls: boolean;
  /** Whether another probe may be sent: not while one is under way, and never once the server closed, failed or sent 421. */
  readonly usable: boolean;
  /**
   * Sends MAIL, RCPT and RSET: one round trip with PIPELINING (RFC 2920 §3.1), else one for each command. When the server
   * demands TLS and offers it, the probe is repeated once over TLS. One probe at a time. Throws on a second one, and on
   * addresses that must not be sent.
   *
   * Ends within one reply timeout for each command, or at the session's deadline, or when closed.
   * Recipients' replies are used only when each is surely the reply to its own command. RSET tells: every server accepts it
   * (RFC 5321 §4.1.1.5). A refusal in its place was meant for a recipient, so the server sent a reply too many. When none
   * comes, an acceptance before it may have been meant for RSET, so a reply is missing.
   */
  probe(probe: SmtpProbe): Promise<SmtpProbeResult>;
  /** QUIT in the background, destroyed after `QUIT_WAIT_MS`. A probe under way ends as `closed`. */
  close(): void;
}

/** After 421 a server closes (RFC 5321 §3.8); the remaining replies of the group must arrive within this time. */
export const AFTER_421_MS = 1_000;
/** Without PIPELINING, a server that does not reply to RSET within this time is not asked again. Its earlier replies count. */
export const RSET_WAIT_MS = 5_000;
/** Replies that mean "not implemented" (RFC 5321 §4.2.4), and the one before the server closes. */
const RSET_NOT_DONE: ReadonlySet<number> = new Set([421, 500, 501, 502, 503, 504]);

/** Creates the session of a connection that is past EHLO; the session owns the connection from then on. */
export const createSession = (context: SmtpLineContext, capabilities: SmtpCapabilities): SmtpSession =>
  new Session(context, capabilities);

class Session implements SmtpSession {
  tls: boolean = false;
  private isProbing: boolean = false;
  private isOver: boolean = false;
  private triedTls: boolean = false;
  private reply421: SmtpReply | null = null;

  constructor(
    private readonly context: SmtpLineContext,
    public capabilities: SmtpCapabilities,
  ) {}

  get usable(): boolean {
    return !this.isProbing && !this.isOver && this.context.line.problem === null;
  }

  get transcript(): readonly SmtpTranscriptLine[] {
    return this.context.transcript.lines();
  }

  async probe(probe: SmtpProbe): Promise<SmtpProbeResult> {
    if (this.isProbing) throw new Error("concurrent probes in one SMTP session");
    const usable = this.usable;
    this.isProbing = true;
    try {
      this.context.transcript.beginProbe();
      const result = await this.send(probe, usable);
      if (!this.shouldSecure(result)) return result;
      const failure = await this.upgrade();
      return failure ? { ...result, failure } : await this.send(probe, true);
    } finally {
      this.isProbing = false;
    }
  }

  close(): void {
    this.isOver = true;
    this.context.line.quit();
  }

  private async send(probe: SmtpProbe, usable: boolean): Promise<SmtpProbeResult> {
    const { line } = this.context;
    const commands = envelopeCommands(probe, this.capabilities.eightBitMime);
    const rcpts: (SmtpReply | null)[] = probe.recipients.map(() => null);
    if (!usable) return { mail: null, rcpts, failure: lineFailure(this.context, "mail", "closed") };
    if (probe.smtputf8 && !this.capabilities.smtputf8) {
      const failure: SmtpFailure = {
        ...lineFailure(this.context, "mail", "closed"),
        kind: "smtputf8_not_offered",
      };
      return { mail: null, rcpts, failure };
    }

    const grouped = this.capabilities.pipelining;
    if (grouped) line.send([commands.mail, ...commands.rcpts, "RSET"]);
    const exchange = (stage: SmtpStage, command: string) => this.exchange(stage, grouped ? null : command);
    const mail = await exchange("mail", commands.mail);
    if (!mail.ok) return { mail: null, rcpts, failure: mail.error };
    const mailAccepted = isAccepted(mail.value);

    let failure = mailAccepted ? null : replyFailure(this.context, "mail", mail.value);
    if (mailAccepted || grouped) {
      for (const [index, command] of commands.rcpts.entries()) {
        const rcpt = await exchange("rcpt", command);
        if (!rcpt.ok) {
          failure ??= rcpt.error;
          break;
        }
        if (!mailAccepted) continue;
        rcpts[index] = rcpt.value;
        if (!grouped && probe.stopAfter?.(index, rcpt.value)) break;
      }
      await this.reset(rcpts, grouped);
    }
    if (this.reply421) this.close();
    const { problem } = line;
    const isDoubtful = problem === "surplus_reply" || (grouped && lacksReply(problem, rcpts));
    if (problem === null || !isDoubtful) return { mail: mail.value, rcpts, failure };
    return { mail: mail.value, rcpts: rcpts.fill(null), failure: lineFailure(this.context, "rcpt", problem) };
  }

  /** Ends the transaction, which proves that each reply was read as the reply to its own command. */
  private async reset(rcpts: readonly (SmtpReply | null)[], grouped: boolean): Promise<void> {
    const { line, clock, replyTimeoutMs } = this.context;
    if (line.problem !== null || this.isOver || this.reply421) return;
    if (!grouped) line.send(["RSET"]);
    const waitMs = grouped ? replyTimeoutMs : Math.min(RSET_WAIT_MS, replyTimeoutMs);
    const reset = await line.readReply(clock.monotonicMs() + waitMs);
    if (!reset.ok) return;
    if (isAboutRecipient(reset.value, rcpts)) line.surplus();
    else if (!isAccepted(reset.value) && !demandsTls(reset.value)) this.close();
  }

  /** Sends `command` (`null`: it was sent already) and reads its reply, whose code is a valid one if it is ok. */
  private async exchange(stage: SmtpStage, command: string | null): Promise<Result<SmtpReply, SmtpFailure>> {
    const { line, clock, replyTimeoutMs } = this.context;
    if (command !== null) {
      if (this.reply421) return err(this.closedAfter421(stage, this.reply421));
      line.send([command]);
    }
    const waitMs = this.reply421 ? Math.min(AFTER_421_MS, replyTimeoutMs) : replyTimeoutMs;
    const reply = await line.readReply(clock.monotonicMs() + waitMs);
    if (!reply.ok) {
      if (this.reply421) return err(this.closedAfter421(stage, this.reply421));
      return err(lineFailure(this.context, stage, reply.error));
    }
    if (!isAccepted(reply.value) && !isRefused(reply.value)) return err(this.end(stage, reply.value));
    if (reply.value.code === 421) this.reply421 = reply.value;
    return reply;
  }

  private closedAfter421(stage: SmtpStage, reply421: SmtpReply): SmtpFailure {
    return { ...lineFailure(this.context, stage, "closed"), reply: reply421 };
  }

  /** The session cannot continue after this reply. */
  private end(stage: SmtpStage, reply: SmtpReply): SmtpFailure {
    const failure = replyFailure(this.context, stage, reply);
    this.isOver = true;
    closeAfter(this.context, failure);
    return failure;
  }

  private shouldSecure({ mail, rcpts }: SmtpProbeResult): boolean {
    if (this.tls || this.triedTls || this.isOver || !this.capabilities.starttls) return false;
    if (this.context.line.problem !== null) return false;
    return [mail, ...rcpts].some((reply) => reply !== null && demandsTls(reply));
  }

  private async upgrade(): Promise<SmtpFailure | null> {
    this.triedTls = true;
    const secured = await secure(this.context);
    if (!secured.ok) {
      this.isOver = true;
      closeAfter(this.context, secured.error);
      return secured.error;
    }
    this.tls = true;
    this.capabilities = secured.value;
    return null;
  }
}

/**
 * A refusal in the place of RSET's reply that was meant for a recipient, since servers do not refuse RSET. A server that
 * refuses the recipients and RSET alike refuses us. (The enhanced code of an accepted RSET tells nothing: some reply 2.1.5.)
 */
const isAboutRecipient = (reset: SmtpReply, rcpts: readonly (SmtpReply | null)[]) => {
  if (!isRefused(reset) || RSET_NOT_DONE.has(reset.code) || demandsTls(reset)) return false;
  return rcpts.some((rcpt) => rcpt !== null && rcpt.code !== reset.code);
};

/** The time of a group was up after an acceptance, which may have been the reply to RSET. */
const lacksReply = (problem: LineProblem | null, rcpts: readonly (SmtpReply | null)[]) => {
  const latest = rcpts.findLast((rcpt) => rcpt !== null);
  return (
    (problem === "timeout" || problem === "deadline") && latest !== undefined && latest !== null && isAccepted(latest)
  );
};
