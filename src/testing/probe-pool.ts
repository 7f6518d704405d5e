import { err, ok, type Result } from "../foundation/base/errors.ts";
import type { OnBehalfOf } from "../foundation/base/on-behalf-of.ts";
import { NO_CAPABILITIES } from "../foundation/net/smtp-handshake.ts";
import type { SmtpFailure } from "../foundation/net/smtp-failure.ts";
import { parseReply, type SmtpReply } from "../foundation/net/smtp-reply.ts";
import type { SmtpProbeResult, SmtpProbe, SmtpSession } from "../foundation/net/smtp-session.ts";
import type { ProbeTarget } from "../verify/smtp/host-queue.ts";
import { Pacing } from "../verify/smtp/pacing.ts";
import { ProbePool } from "../verify/smtp/pool.ts";
import { createTestClock, settle } from "./clock.ts";

/** A reply from its one line. */
export const replyOf = (line: string): SmtpReply => {
  const reply = parseReply(line);
  if (!reply.ok) throw new Error(`not a reply: ${line}`);
  return reply.value;
};
/** The reply of a host that accepts everything. */
export const OK = replyOf("250 2.1.5 Ok");
/** A failure of a session, without a reply. */
export const failureOf = (kind: SmtpFailure["kind"], stage: SmtpFailure["stage"]): SmtpFailure => ({
  stage,
  kind,
  reply: null,
  detail: null,
  receivedAnything: stage !== "connect",
  transcript: [],
});
/** The result at a host that accepts every recipient. */
export const yes = (question: SmtpProbe): SmtpProbeResult => ({
  mail: OK,
  rcpts: question.recipients.map(() => OK),
  failure: null,
});
/** The result of a session that failed before the reply to MAIL. */
export const unsaid = (question: SmtpProbe, failure: SmtpFailure): SmtpProbeResult => ({
  mail: null,
  rcpts: question.recipients.map(() => null),
  failure,
});

/** A probe from the null sender. */
export const question = (...recipients: string[]): SmtpProbe => ({ mailFrom: "", recipients, smtputf8: false });
/** One address of a mail host, on port 25. */
export const host = (address: string, name = `mx.${address}`, provider = name): ProbeTarget => ({
  host: name,
  address,
  port: 25,
  egress: "direct",
  provider,
});
/** On behalf of a list. */
export const LIST: OnBehalfOf = { account: null, priority: "bulk" };
/** Two hosts that have nothing in common. */
export const A = host("192.0.2.1");
/** See `A`. */
export const B = host("192.0.2.2");

type Say = (question: SmtpProbe, session: FakeSession) => SmtpProbeResult | Promise<SmtpProbeResult>;

class FakeSession implements SmtpSession {
  readonly capabilities = NO_CAPABILITIES;
  readonly transcript = [];
  readonly tls = false;
  usable = true;
  closed: boolean = false;
  readonly asked: SmtpProbe[] = [];
  constructor(
    readonly target: ProbeTarget,
    private readonly say: Say,
  ) {}
  async probe(asked: SmtpProbe): Promise<SmtpProbeResult> {
    if (this.closed) throw new Error("probed after close");
    this.asked.push(asked);
    return await this.say(asked, this);
  }
  close(): void {
    this.closed = true;
  }
}

export interface ProbePoolLimits {
  readonly connectionsMax?: number;
  readonly connectionsPerHostMax?: number;
  readonly rcptPerConnectionMax?: number;
  readonly connectionsPerProviderMax?: (provider: string) => number;
  readonly connectionsPerEgressMax?: number;
}

/** A pool over fake sessions. Without `say` every probe waits for a call of `answer`, oldest first. */
export const poolOf = (
  limits: ProbePoolLimits = {},
  say?: Say,
  refuse: (target: ProbeTarget) => SmtpFailure | null = () => null,
) => {
  const clock = createTestClock();
  const sessions: FakeSession[] = [];
  const held: Array<{ question: SmtpProbe; session: FakeSession; let: (answer: SmtpProbeResult) => void }> = [];
  const hold: Say = (asked, session) => new Promise((resolve) => held.push({ question: asked, session, let: resolve }));
  const pool = new ProbePool(clock, {
    connectionsMax: 10,
    connectionsPerHostMax: 2,
    rcptPerConnectionMax: 50,
    connectionsPerProviderMax: () => Number.POSITIVE_INFINITY,
    connectionsPerEgressMax: Number.POSITIVE_INFINITY,
    pacing: new Pacing(clock, limits.connectionsPerHostMax ?? 2),
    ...limits,
    open: async (target): Promise<Result<SmtpSession, SmtpFailure>> => {
      const failure = refuse(target);
      if (failure !== null) return err(failure);
      const session = new FakeSession(target, say ?? hold);
      sessions.push(session);
      return ok(session);
    },
  });
  return {
    pool,
    clock,
    sessions,
    held,
    /** The first recipients of the probes that are held, in their order. */
    asking: () => held.map(({ question: { recipients } }) => recipients[0] ?? ""),
    standing: () => sessions.filter(({ closed }) => !closed).length,
    /** Replies to the oldest probe that is held, if any. */
    async answer(answering = yes) {
      const first = held.shift();
      first?.let(answering(first.question));
      await settle();
    },
  };
};
