import { err, type Result } from "../base/errors.ts";
import type { SmtpCapabilities } from "./smtp-capabilities.ts";
import { envelopeCommands, type SmtpEnvelope } from "./smtp-commands.ts";
import type { SmtpTranscriptLine } from "./smtp-transcript.ts";
import { demandsTls, isAccepted, isRefused, type SmtpFailure, type SmtpStage } from "./smtp-failure.ts";
import { lineFailure, type SmtpLineContext, closeAfter, replyFailure, secure } from "./smtp-handshake.ts";
import type { SmtpReply } from "./smtp-reply.ts";

/** One MAIL with its recipients. */
export interface SmtpProbe extends SmtpEnvelope {
  /**
   * Called with each recipient's reply; true leaves the later recipients unasked (their answer stays `null`).
   * Not called where the server offers PIPELINING: there all were asked before the first reply came.
   */
  readonly stopAfter?: (index: number, reply: SmtpReply) => boolean;
}

/**
 * What the server said. `rcpts` has one place for each recipient, `null` where no answer is known. A reply is there
 * even when the dialogue failed later, or when it demanded TLS and that failed (stage `starttls`). `failure` is also set
 * when MAIL was refused (stage `mail`, kind `reply`).
 */
export interface SmtpProbeResult {
  readonly mail: SmtpReply | null;
  readonly rcpts: readonly (SmtpReply | null)[];
  readonly failure: SmtpFailure | null;
}

/** An SMTP session past EHLO. Never sends DATA. */
export interface SmtpSession {
  readonly capabilities: SmtpCapabilities;
  /** The opening and the latest question, bounded: ask for it before the next question. */
  readonly transcript: readonly SmtpTranscriptLine[];
  readonly tls: boolean;
  /** May another question be asked? False while one is, and for ever once the server closed, erred or said 421. */
  readonly usable: boolean;
  /**
   * Asks for the recipients of one MAIL, after RSET when the session is warm: one round trip with PIPELINING
   * (RFC 2920 §3.1), else one for each command. When the server demands TLS and offers it, the question is repeated
   * once over TLS. One question at a time. Throws on a second one, and on addresses that cannot go on the wire.
   *
   * Ends within one reply timeout for each command, or at the session's deadline, or when closed.
   * A server that sends more replies than it was asked for is not believed about any recipient of this question.
   */
  probe(question: SmtpProbe): Promise<SmtpProbeResult>;
  /** QUIT in the background, destroyed after `QUIT_WAIT_MS`. A question under way ends as `closed`. */
  close(): void;
}

/** After 421 a server closes (RFC 5321 §3.8); replies to the rest of the group get only this long. */
export const AFTER_421_MS = 1_000;

/** Makes the session of a conversation that has said EHLO; the session owns the line from then on. */
export const createSession = (conversation: SmtpLineContext, capabilities: SmtpCapabilities): SmtpSession =>
  new Session(conversation, capabilities);

class Session implements SmtpSession {
  tls: boolean = false;
  private asking: boolean = false;
  private over: boolean = false;
  private triedTls: boolean = false;
  /** A MAIL was accepted, so that the next needs RSET before it. */
  private warm: boolean = false;
  private farewell: SmtpReply | null = null;

  constructor(
    private readonly conversation: SmtpLineContext,
    public capabilities: SmtpCapabilities,
  ) {}

  get usable(): boolean {
    return !this.asking && !this.over && this.conversation.line.problem === null;
  }

  get transcript(): readonly SmtpTranscriptLine[] {
    return this.conversation.dialogue.lines();
  }

  async probe(question: SmtpProbe): Promise<SmtpProbeResult> {
    if (this.asking) throw new Error("two questions at once in one SMTP session");
    const usable = this.usable;
    this.asking = true;
    try {
      this.conversation.dialogue.beginProbe();
      const answer = await this.put(question, usable);
      if (!this.shouldSecure(answer)) return answer;
      const failure = await this.upgrade();
      return failure ? { ...answer, failure } : await this.put(question, true);
    } finally {
      this.asking = false;
    }
  }

  close(): void {
    this.over = true;
    this.conversation.line.leave();
  }

  private async put(question: SmtpProbe, usable: boolean): Promise<SmtpProbeResult> {
    const { line } = this.conversation;
    const commands = envelopeCommands(question, this.capabilities.eightBitMime);
    const rcpts: (SmtpReply | null)[] = question.recipients.map(() => null);
    if (!usable) return { mail: null, rcpts, failure: lineFailure(this.conversation, this.firstStage, "closed") };
    if (question.smtputf8 && !this.capabilities.smtputf8) {
      const failure: SmtpFailure = {
        ...lineFailure(this.conversation, "mail", "closed"),
        kind: "smtputf8_not_offered",
      };
      return { mail: null, rcpts, failure };
    }

    const grouped = this.capabilities.pipelining;
    if (grouped) line.send([...(this.warm ? ["RSET"] : []), commands.mail, ...commands.rcpts]);
    const hear = (stage: SmtpStage, command: string) => this.hear(stage, grouped ? null : command);
    if (this.warm) {
      const reset = await hear("rset", "RSET");
      if (!reset.ok) return { mail: null, rcpts, failure: reset.error };
      if (!isAccepted(reset.value)) return { mail: null, rcpts, failure: this.end("rset", reset.value) };
      this.warm = false;
    }
    const mail = await hear("mail", commands.mail);
    if (!mail.ok) return { mail: null, rcpts, failure: mail.error };
    const mailAccepted = isAccepted(mail.value);
    if (mailAccepted) this.warm = true;

    let failure = mailAccepted ? null : replyFailure(this.conversation, "mail", mail.value);
    if (mailAccepted || grouped) {
      for (const [index, command] of commands.rcpts.entries()) {
        const rcpt = await hear("rcpt", command);
        if (!rcpt.ok) {
          failure ??= rcpt.error;
          break;
        }
        if (!mailAccepted) continue;
        rcpts[index] = rcpt.value;
        if (!grouped && question.stopAfter?.(index, rcpt.value)) break;
      }
    }
    if (this.farewell) this.close();
    if (line.problem !== "surplus_reply") return { mail: mail.value, rcpts, failure };
    return { mail: mail.value, rcpts: rcpts.fill(null), failure: lineFailure(this.conversation, "rcpt", line.problem) };
  }

  /** Sends `command` (`null`: it is on its way already) and hears its reply, whose code makes sense if it is ok. */
  private async hear(stage: SmtpStage, command: string | null): Promise<Result<SmtpReply, SmtpFailure>> {
    const { line, clock, replyTimeoutMs } = this.conversation;
    if (command !== null) {
      if (this.farewell) return err(this.hungUp(stage, this.farewell));
      line.send([command]);
    }
    const waitMs = this.farewell ? Math.min(AFTER_421_MS, replyTimeoutMs) : replyTimeoutMs;
    const reply = await line.readReply(clock.monotonicMs() + waitMs);
    if (!reply.ok) {
      if (this.farewell) return err(this.hungUp(stage, this.farewell));
      return err(lineFailure(this.conversation, stage, reply.error));
    }
    if (!isAccepted(reply.value) && !isRefused(reply.value)) return err(this.end(stage, reply.value));
    if (reply.value.code === 421) this.farewell = reply.value;
    return reply;
  }

  private get firstStage(): SmtpStage {
    return this.warm ? "rset" : "mail";
  }

  private hungUp(stage: SmtpStage, farewell: SmtpReply): SmtpFailure {
    return { ...lineFailure(this.conversation, stage, "closed"), reply: farewell };
  }

  /** The session cannot go on after this reply. */
  private end(stage: SmtpStage, reply: SmtpReply): SmtpFailure {
    const failure = replyFailure(this.conversation, stage, reply);
    this.over = true;
    closeAfter(this.conversation, failure);
    return failure;
  }

  private shouldSecure({ mail, rcpts }: SmtpProbeResult): boolean {
    if (this.tls || this.triedTls || this.over || !this.capabilities.starttls) return false;
    if (this.conversation.line.problem !== null) return false;
    return [mail, ...rcpts].some((reply) => reply !== null && demandsTls(reply));
  }

  private async upgrade(): Promise<SmtpFailure | null> {
    this.triedTls = true;
    const secured = await secure(this.conversation);
    if (!secured.ok) {
      this.over = true;
      closeAfter(this.conversation, secured.error);
      return secured.error;
    }
    this.tls = true;
    this.warm = false;
    this.capabilities = secured.value;
    return null;
  }
}
